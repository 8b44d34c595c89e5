"""The path by which a model is trained. It needs no torch: pages and forms show the path before anything is loaded."""

from typing import Literal

KNOWN = ("llama", "mistral", "qwen2", "qwen3")
"""Values of `model_type` in config.json: architectures whose attention takes explicit masks and whose head is one plain matrix.

Their attention is by groups. Any other architecture runs in its own attention and is tried first: `trainer.inference.decoders`.
"""

Path = Literal["grouped", "generic"]


def path_of(model_type: str | None) -> Path:
    return "grouped" if model_type in KNOWN else "generic"


def unknown(model_type: str | None) -> str:
    """The reason why a model of this architecture cannot judge or score; empty if it can. It may still be trained to write."""
    if model_type in KNOWN:
        return ""
    return f"architecture {model_type!r} is not supported here; supported: {', '.join(KNOWN)}"

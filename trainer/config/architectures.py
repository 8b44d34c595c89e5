"""Which models can be trained. Torch-free: a form can say so before anything is loaded."""

SUPPORTED = ("llama", "mistral", "qwen2", "qwen3")
"""Values of `model_type` in config.json: architectures whose attention takes explicit masks and whose head is one plain matrix."""


def unsupported(model_type: str | None) -> str:
    """Why a model of this architecture cannot be trained; empty where it can."""
    if model_type in SUPPORTED:
        return ""
    return f"architecture {model_type!r} is not supported; supported: {', '.join(SUPPORTED)}"

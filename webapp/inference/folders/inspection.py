"""The contents of a model's directory: a whole model or an adapter, which writes text or scores it.

This module needs no torch: it reads only the header of a file of weights, which names each tensor with its shape.
"""

import json
from pathlib import Path
from typing import Any

from trainer.contracts.plurals import with_noun
from webapp.core.problems import Invalid

from ..models import RegisteredModel
from ..queries import source
from . import tokenizers

MAX_JSON_BYTES = 20_000_000
OF_ARCHITECTURE = ("model_type", "hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings")
ADAPTER = "adapter_config.json"
UNLIKE = {
    "lm": "the directory holds a model that writes text; leave this empty",
    "scalar": "the directory holds a model that scores texts; leave this empty",
}
_CLASSIFIER = "ForSequenceClassification"
_SCORE = "score.weight"
_LAID_ON = "base_model.model."
_WEIGHTS = "adapter_model.safetensors"
Head, Format = RegisteredModel.Head, RegisteredModel.Format
Shapes = dict[str, list[int]]


def inspect(folder: Path, base: RegisteredModel | None = None) -> dict[str, Any]:
    """`facts`, `head` and `format` of the model in the directory, and its `base` if it is an adapter.

    Raises Invalid at `path` with the first thing that is missing, and at `base` if the adapter was trained on another model.
    """
    if not folder.is_absolute():
        raise _unusable("must be an absolute path")
    if not folder.is_dir():
        raise _unusable(f"{folder} is not a directory the server can read")
    if (folder / ADAPTER).is_file() and not (folder / "config.json").is_file():
        return _adapter(folder, base)
    if base is not None:
        raise _unusable("leave it empty: the directory holds a whole model and no adapter", "base")
    return _whole(folder)


def _whole(folder: Path) -> dict[str, Any]:
    config = _json(folder, "config.json")
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise _unusable("holds no *.safetensors weights")
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise _unusable("holds no tokenizer (tokenizer.json)")
    if not (folder / "chat_template.jinja").is_file() and not _json(folder, "tokenizer_config.json").get(
        "chat_template"
    ):
        raise _unusable(
            "its tokenizer has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)"
        )
    facts = {key: config[key] for key in OF_ARCHITECTURE if isinstance(config.get(key), int | str)}
    architectures = config.get("architectures")
    if isinstance(architectures, list) and architectures:
        facts["architecture"] = str(architectures[0])
    head = _head(weights, config, facts.get("architecture", ""))
    return {"facts": {**facts, **_measured(folder, weights, config.get("vocab_size"))}, "head": head}


def _head(weights: list[Path], config: dict[str, Any], architecture: str) -> str:
    if not architecture.endswith(_CLASSIFIER):
        return Head.LM
    labels = config.get("id2label")
    numbers = len(labels) if isinstance(labels, dict) else 2  # as in transformers, if the config does not say
    if numbers != 1:
        raise _unusable(
            f"gives {with_noun(numbers, 'numbers')} for a text (id2label in config.json); a reward model gives one"
        )
    if _SCORE not in _shapes(weights):
        raise _unusable(f"its weights lack {_SCORE}, the head that scores; it was saved without it")
    return Head.SCALAR


def _adapter(folder: Path, base: RegisteredModel | None) -> dict[str, Any]:
    config = _json(folder, ADAPTER)
    if config.get("peft_type") != "LORA":
        raise _unusable(f"holds an adapter of type {config.get('peft_type')!r}; only LORA can be used")
    if not (folder / _WEIGHTS).is_file():
        raise _unusable(f"holds an adapter without {_WEIGHTS}")
    if base is None:
        raise _unusable("the directory holds an adapter: choose the model that it was trained on", "base")
    given = _shapes([folder / _WEIGHTS])
    if why := _incompatibility(given, base):
        raise _unusable(f"the adapter was trained on another model than {base.name}: {why}", "base")
    scores = base.head == Head.SCALAR or _LAID_ON + _SCORE in given
    inherited = {key: value for key, value in base.facts.items() if key in OF_ARCHITECTURE}
    facts = {**inherited, **_measured(folder, [folder / _WEIGHTS], base.facts.get("vocab_size"))}
    return {"facts": facts, "head": Head.SCALAR if scores else Head.LM, "format": Format.PEFT, "base": base}


def _incompatibility(given: Shapes, base: RegisteredModel) -> str:
    """The reason why the tensors of an adapter do not fit those of the base; empty if they fit, or if the base is not on this machine.

    LoRA's A has as many columns as the matrix it is laid on, and B as many rows.
    """
    folder = Path(source(base).path)
    under = _shapes(sorted(folder.glob("*.safetensors"))) if folder.is_absolute() else {}
    if not under:
        return ""
    for name, shape in sorted(given.items()):
        for part, axis in ((".lora_A.weight", 1), (".lora_B.weight", 0)):
            place = name.removeprefix(_LAID_ON).removesuffix(part) + ".weight"
            if not name.endswith(part) or ".layers." not in place:
                continue
            if place not in under:
                return f"that has no {place}"
            if len(shape) != 2 or len(under[place]) != 2:
                return f"{name} is not a matrix with as many dimensions as {place}: {shape} and {under[place]}"
            if shape[axis] != under[place][axis]:
                return (
                    f"{place} is {' x '.join(map(str, under[place]))} there, and it has {shape[axis]:,} in that place"
                )
    return ""


def _measured(folder: Path, weights: list[Path], rows: object) -> dict[str, Any]:
    """The digest of the tokenizer, by which a change is noticed, and how large the weights are."""
    try:
        why = tokenizers.problem(folder, rows)
    except ValueError as error:
        why = f"its tokenizer.json cannot be read: {error}"
    if why:
        raise _unusable(why)
    known = tokenizers.digest(folder)
    return {**({tokenizers.FACT: known} if known else {}), "weight_bytes": sum(file.stat().st_size for file in weights)}


def _shapes(files: list[Path]) -> Shapes:
    """The tensors by name. Raises Invalid at `path`."""
    found: Shapes = {}
    for file in files:
        try:
            with file.open("rb") as stream:
                length = int.from_bytes(stream.read(8), "little")
                if length > MAX_JSON_BYTES:
                    raise ValueError("its header is too long")
                header = json.loads(stream.read(length))
            found |= {name: [int(n) for n in told["shape"]] for name, told in header.items() if name != "__metadata__"}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _unusable(f"{file.name} cannot be read as safetensors: {error}") from error
    return found


def _json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError("too large")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not an object")
    except FileNotFoundError as error:
        raise _unusable(f"holds no {name}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(f"its {name} cannot be read: {error}") from error
    return found


def _unusable(reason: str, field: str = "path") -> Invalid:
    return Invalid("The directory cannot be used.", {field: reason})

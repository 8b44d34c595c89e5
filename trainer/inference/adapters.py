"""Adapters laid on the model they were trained on: loaded and merged, layer upon layer."""

import json
import shutil
from pathlib import Path
from typing import Any

from trainer.contracts import ModelSource

from .models import ModelInvalid, best_device, check_directory, complete_or_absent, model_directory

_WEIGHTS = "adapter_model.safetensors"
_TEXTS = (
    "reward.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.jinja",
    "*.model",
)


def whole_directory(source: ModelSource, kept: Path) -> Path:
    """The directory of a whole model: the model's own if no adapters lie on it, else `kept`, which is filled once.

    Merged weights are float32, so that rounding takes nothing from the adapters. Raises ModelInvalid and OSError.
    """
    base = model_directory(source.path)
    if not source.adapters:
        return base
    if (kept / "config.json").is_file():
        return kept
    folders = [Path(path) for path in source.adapters]
    merged = load_merged(base, folders, source.head)
    with complete_or_absent(kept) as target:
        merged.save_pretrained(target)
        copy_texts([base, *folders], target)
    return kept


def copy_texts(folders: list[Path], target: Path) -> None:
    """Copy tokenizer, chat template and the scale of a reward model; files of a later folder replace those of an earlier one."""
    for folder in folders:
        for pattern in _TEXTS:
            for file in folder.glob(pattern):
                shutil.copyfile(file, target / file.name)


def load_merged(base: Path, adapters: list[Path], head: str = "lm") -> Any:
    """The model in float32 with the adapters merged, the first one first. Raises ModelInvalid if an adapter does not fit."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    check_directory(base)
    kwargs: dict[str, Any] = {"dtype": torch.float32, "use_safetensors": True, "trust_remote_code": False}
    if head == "scalar":
        model = AutoModelForSequenceClassification.from_pretrained(str(base), num_labels=1, **kwargs)
    else:
        model = AutoModelForCausalLM.from_pretrained(str(base), **kwargs)
    model = model.to(best_device())
    for folder in adapters:
        model = _merged(model, folder)
    return model


def _merged(model: Any, folder: Path) -> Any:
    from peft import PeftModel

    check_adapter(folder)
    try:
        laid_on = PeftModel.from_pretrained(model, str(folder), torch_device=str(model.device))
    except (RuntimeError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[-1][:300]
        raise ModelInvalid(
            f"{folder}: this adapter was trained for another base model ({reason}). Use it with the model that its card names."
        ) from error
    _check_complete(laid_on, folder)
    return laid_on.merge_and_unload()


def _check_complete(laid_on: Any, folder: Path) -> None:
    """Raises ModelInvalid for tensors for which the model has no place: peft only warns of them."""
    from peft import get_peft_model_state_dict
    from safetensors import safe_open

    with safe_open(str(folder / _WEIGHTS), framework="pt") as file:
        given = set(file.keys())
    unknown = sorted(given - set(get_peft_model_state_dict(laid_on)))
    if unknown:
        raise ModelInvalid(
            f"{folder}: this adapter was trained for another base model: {len(unknown)} of its tensors have no place in "
            f"this one, {unknown[0]} among them. Use it with the model that its card names."
        )


def check_adapter(folder: Path) -> None:
    """Check config and file format before anything heavy is imported. Raises ModelInvalid."""
    try:
        kind = json.loads((folder / "adapter_config.json").read_text()).get("peft_type")
    except (OSError, ValueError, AttributeError) as error:
        raise ModelInvalid(f"{folder}: adapter_config.json cannot be read ({error})") from error
    if kind != "LORA":
        raise ModelInvalid(f"{folder}: adapters of type {kind!r} are not supported, only LORA")
    if not (folder / _WEIGHTS).is_file():
        raise ModelInvalid(f"{folder}: no {_WEIGHTS} here; pickled weights are never loaded")

"""Trained weights as a folder that stock transformers or peft loads.

Adapters are written as adapters: some megabytes whose float32 values lose nothing. Merging would round them to the dtype of the
base and repeat all of its weights. `model.export` asks for the merged model if another program cannot load adapters.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainer.config.recipe import RecipeConfig
from trainer.config.sections.common import Lora
from trainer.inference.adapters import copy_texts

from .trained import Task

_TERMS = ("LICENSE*", "LICENCE*", "NOTICE*")
_SHARD = "5GB"


class Exported(Protocol):
    """The interface by which the writer reads trained parameters. This process has them, or several processes share them."""

    def policy(self) -> dict[str, Tensor]: ...

    def merged_weights(self) -> Iterable[tuple[str, Tensor]]: ...


def write_model(folder: Path, config: RecipeConfig, base: Path, trained: Exported, task: Task = "CAUSAL_LM") -> None:
    """Fill an empty folder with the trained weights, the tokenizer, and the licence texts of the base. Raises OSError."""
    copy_texts([base], folder)
    _copy(base, folder, _TERMS)
    if config.model.lora and config.model.export == "adapter":
        _write_adapter(folder, config.model.name, config.model.lora, trained.policy(), task)
        return
    _write_weights(folder, base, trained.merged_weights(), getattr(torch, config.model.dtype), task)
    _write_config(folder, base, config.model.dtype, task)


def _write_adapter(folder: Path, base: str, lora: Lora, parameters: Mapping[str, Tensor], task: Task) -> None:
    from peft import LoraConfig

    tensors = {_saved_name(name): value.detach().cpu().contiguous() for name, value in parameters.items()}
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]  # peft declares int, and writes any number
        lora_dropout=0.0,
        target_modules=sorted({name.split(".")[-3] for name in tensors if name.endswith("lora_A.weight")}),
        modules_to_save=["score"] if task == "SEQ_CLS" else None,
        task_type=task,
        inference_mode=True,
        base_model_name_or_path=base,
    ).save_pretrained(str(folder))
    file = folder / "adapter_config.json"
    settings = json.loads(file.read_text())
    settings["target_modules"] = sorted(settings["target_modules"])  # peft writes a set, whose order differs each time
    file.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def _saved_name(name: str) -> str:
    """The name as peft writes it: without `.default` and without `.modules_to_save.default`."""
    return name.replace(".modules_to_save.default.", ".").replace(".default.", ".")


def _write_weights(
    folder: Path, base: Path, changed: Iterable[tuple[str, Tensor]], dtype: torch.dtype, task: Task
) -> None:
    from huggingface_hub import save_torch_state_dict

    weights = {name: value.to(dtype) for name, value in _base_weights(base, task)}
    weights |= {name: value.detach().cpu().contiguous() for name, value in changed}
    save_torch_state_dict(weights, folder, max_shard_size=_SHARD)


def _base_weights(base: Path, task: Task) -> Iterator[tuple[str, Tensor]]:
    """The weights of the base that training may have left unchanged; a scalar head takes the place of the language head."""
    for file in sorted(base.glob("*.safetensors")):
        for name, value in load_file(file).items():
            if task == "CAUSAL_LM" or not name.startswith("lm_head."):
                yield name, value


def _write_config(folder: Path, base: Path, dtype: str, task: Task) -> None:
    config: dict[str, Any] = json.loads((base / "config.json").read_text())
    config["torch_dtype" if "torch_dtype" in config else "dtype"] = dtype
    if task == "CAUSAL_LM":
        _copy(base, folder, ("generation_config.json",))
    else:
        config |= _scalar_settings(folder, config)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def _scalar_settings(tokenizer: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that turn a language model's config into that of a model with one number per text.

    Transformers reads a text's number at its last token that is not padding, so the config must name the padding token.
    """
    kind = str((config.get("architectures") or ["ForCausalLM"])[0]).partition("For")[0]
    pad = config.get("pad_token_id")
    return {
        "architectures": [f"{kind}ForSequenceClassification"],
        "id2label": {"0": "reward"},
        "label2id": {"reward": 0},
        "num_labels": 1,
        "problem_type": "regression",
        "pad_token_id": _padding(tokenizer, config) if pad is None else pad,
    }


def _padding(tokenizer: Path, config: Mapping[str, Any]) -> int:
    """A token that ends no text: the tokenizer's padding if it is not also an end, else another special token."""
    from transformers import AutoTokenizer

    found: Any = AutoTokenizer.from_pretrained(str(tokenizer), trust_remote_code=False)
    configured = config.get("eos_token_id")
    ends = {found.eos_token_id, *(configured if isinstance(configured, list) else [configured])}
    candidates = (found.pad_token_id, found.unk_token_id, found.bos_token_id, *found.all_special_ids)
    return next((int(each) for each in candidates if each is not None and each not in ends), int(found.eos_token_id))


def _copy(source: Path, folder: Path, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        for file in sorted(source.glob(pattern)):
            if file.is_file():
                shutil.copyfile(file, folder / file.name)

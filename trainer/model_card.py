"""The card of a trained model: README.md with the header that model hubs read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trainer.contracts.model_folder import FolderFormat

if TYPE_CHECKING:
    from trainer.outputs import About

_ROLES = {
    "policy": "answers prompts",
    "reward_model": "scores responses",
    "judge": "judges responses",
    "rubric_writer": "writes rubrics",
}
_AUTO = {"lm": "AutoModelForCausalLM", "scalar": "AutoModelForSequenceClassification"}


def card(about: About, form: FolderFormat) -> str:
    """The card as Markdown: where the model comes from, how to load it, its metrics and its config. The card names facts that are unknown."""
    parts = [_header(about, form), f"# {about.base}, trained with recipe {about.recipe}", _origin(about, form)]
    parts += ["## Load it", _loading(about, form)]
    if about.metrics:
        parts += ["## Metrics at the end of the run", _metrics(about)]
    config = json.dumps(about.config, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    return "\n\n".join([*parts, "## Config", f"```json\n{config}\n```"]) + "\n"


def _header(about: About, form: FolderFormat) -> str:
    """The header as YAML; strings are written as in JSON, which YAML reads alike."""
    task = "text-classification" if about.head == "scalar" else "text-generation"
    lines = [f"base_model: {json.dumps(about.base)}", f"library_name: {'peft' if form == 'peft' else 'transformers'}"]
    lines += [f"pipeline_tag: {task}", f"tags: [touchstone, {about.recipe}, {about.role}]"]
    if about.licence:
        lines.append(f"license: {json.dumps(about.licence)}")
    return "\n".join(["---", *lines, "---"])


def _origin(about: About, form: FolderFormat) -> str:
    kind = "an adapter for its base model" if form == "peft" else "a whole model"
    lines = [
        f"It {_ROLES[about.role]}. This folder holds {kind}.",
        "",
        "| | |",
        "|---|---|",
        f"| base model | {_cell(about.base)} |",
        f"| digest of the base weights | {about.base_digest or 'not taken'} |",
        f"| digest of the training data | {about.data_digest or 'not taken'} |",
        f"| updates | {about.step} |",
        f"| licence of the base model | {_cell(about.licence) or 'the base model does not state one'} |",
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _loading(about: About, form: FolderFormat) -> str:
    auto = _AUTO[about.head]
    if form == "hf":
        lines = [
            f"from transformers import {auto}, AutoTokenizer",
            "",
            f'model = {auto}.from_pretrained("THIS FOLDER")',
            'tokenizer = AutoTokenizer.from_pretrained("THIS FOLDER")',
        ]
    else:
        labels = ", num_labels=1" if about.head == "scalar" else ""
        lines = [
            "from peft import PeftModel",
            f"from transformers import {auto}, AutoTokenizer",
            "",
            f'base = {auto}.from_pretrained("FOLDER OF THE BASE MODEL"{labels})',
            'model = PeftModel.from_pretrained(base, "THIS FOLDER")',
            'tokenizer = AutoTokenizer.from_pretrained("THIS FOLDER")',
        ]
    return "\n".join(["```python", *lines, "```"])


def _metrics(about: About) -> str:
    rows = [f"| {_cell(key)} | {value:.6g} |" for key, value in sorted(about.metrics.items())]
    return "\n".join(["| metric | value |", "|---|---|", *rows])

"""A trained model as a folder of its run: written as a whole or not at all, and described for the registry.

This module imports no torch; the function that fills the folder does.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.contracts import ArtifactData, ModelFacts, ModelFile, OutputRole
from trainer.contracts.model_folder import FolderFormat, Head
from trainer.files import digest_of, flush
from trainer.model_card import card

FOLDER = "outputs"
CARD = "README.md"


class OutputInvalid(ValueError):
    """A folder that holds no model; the message says what is missing."""


@dataclass(frozen=True)
class About:
    """The facts about an output beside its weights. `base` is the config's name of the base model.

    `step` is the last update of the model. `data_digest` is that of the dataset version; `licence` that of the base model.
    An unknown fact stays empty, and the card says so.
    """

    name: str
    role: OutputRole
    recipe: str
    step: int
    base: str
    head: Head = "lm"
    base_digest: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    data_digest: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    licence: str = ""


def write_output(run_dir: Path, place: str, fill: Callable[[Path], None], about: About) -> ArtifactData:
    """Fill `outputs/<place>` of the run's folder and describe its contents. A folder that was there before is replaced as a whole.

    Raises OSError, with an earlier folder unchanged, and OutputInvalid if `fill` wrote no model.
    """
    final = run_dir / FOLDER / place
    partial = final.with_name(f".{place}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        fill(partial)
        (partial / CARD).write_text(card(about, _format(partial)), encoding="utf-8")
        facts = describe(partial, about)
        _flush(partial, facts)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(partial, final)
        flush(final.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    path = final.relative_to(run_dir).as_posix()
    return ArtifactData(
        role="model",
        path=path,
        bytes=sum(file.bytes for file in facts.files),
        digest=folder_digest(facts.files),
        model=facts,
    )


def describe(folder: Path, about: About) -> ModelFacts:
    """The folder's files with their digests, and the kind of model. Raises OutputInvalid."""
    files = list_files(folder)
    return ModelFacts(
        name=about.name,
        role=about.role,
        format=_format(folder),
        head=about.head,
        base=about.base,
        base_digest=about.base_digest,
        files=files,
    )


def list_files(place: Path) -> tuple[ModelFile, ...]:
    """The files of a folder by their paths, or the single file `place`, with sizes and digests. Raises OSError."""
    if place.is_file():
        return (_file(place.parent, place),)
    return tuple(_file(place, path) for path in sorted(place.rglob("*")) if path.is_file())


def folder_digest(files: Sequence[ModelFile]) -> str:
    """SHA-256 over the lines `<digest>  <path>` in the order of the paths, as `sha256sum` prints them."""
    lines = [f"{file.digest}  {file.path}\n" for file in sorted(files, key=lambda file: file.path)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _format(folder: Path) -> FolderFormat:
    if (folder / "adapter_config.json").is_file():
        if not (folder / "adapter_model.safetensors").is_file():
            raise OutputInvalid(f"{folder}: adapter_config.json without adapter_model.safetensors")
        return "peft"
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        raise OutputInvalid(f"{folder}: no model here: config.json and *.safetensors are needed")
    return "hf"


def _file(folder: Path, path: Path) -> ModelFile:
    return ModelFile(path=path.relative_to(folder).as_posix(), bytes=path.stat().st_size, digest=digest_of(path))


def _flush(folder: Path, facts: ModelFacts) -> None:
    for file in facts.files:
        flush(folder / file.path)
    flush(folder)


def licence_of(folder: Path) -> str:
    """The licence that the card of a model states; empty if it states none."""
    try:
        text = (folder / CARD).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    header = text.split("---")[1] if text.startswith("---") else ""
    found = re.search(r"^license: *(\S.*)$", header, re.MULTILINE)
    return found[1].strip("\"' ") if found else ""

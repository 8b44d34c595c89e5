"""Ties a checkpoint to its run: only the run that wrote it may resume from it."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import trainer
from trainer.config import RECIPES, upgrade_stored
from trainer.files import digest_of

from .stage import StageJob

HOW = (
    "steps",
    "alarms",
    "checkpoint",
    "evaluation",
    "people",
    "optim.processes",
    "optim.micro_batch_tokens",
    "optim.recompute_activations",
    "rollout.token_records",
    "runner.workers",
    "runner.reward_workers",
    "runner.gpus_per_worker",
    "sampler.max_batch",
    "resources",
)
"""Fields that say how far a run goes, who watches or how it uses its machine: a resumed run may have other values."""
_SAMPLE_BYTES = 1 << 20
_SHOWN = 5
_UNKNOWN = object()


def fingerprint(job: StageJob) -> dict[str, Any]:
    """Config, models, data and program of a run, as JSON that a checkpoint carries."""
    return {
        "recipe": job.recipe.name,
        "config": job.config.model_dump(mode="json"),
        "models": {role: sampled_digest(path) for role, path in sorted(job.models.items())},
        "data": digest_of(job.examples),
        "code": code_digest(),
    }


def differences(there: Mapping[str, Any], here: Mapping[str, Any], forked: bool = False) -> list[str]:
    """The evidence that a checkpoint with fingerprint `there` is not of the run `here`, as text; another version of the program does not
    count.

    With `forked` the config does not count either, because it was changed on purpose; see `changes`.
    """
    if there["recipe"] != here["recipe"]:
        return [f"its recipe is {there['recipe']!r}, not {here['recipe']!r}"]
    found = [] if forked else changes(there, here)
    roles = sorted({*there["models"], *here["models"]})
    found += [f"the model {role!r} differs" for role in roles if there["models"].get(role) != here["models"].get(role)]
    if there["data"] != here["data"]:
        found.append("the examples differ")
    return found[:_SHOWN] + ([f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])


def changes(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """The differences of the configs, as text, without the fields of HOW. A checkpoint of an older version is read with the meaning
    that it had then: a field that did not exist yet has its default.
    """
    recipe = RECIPES.get(there["recipe"])
    defaults = recipe.schema().model_dump(mode="json") if recipe else {}
    return [
        f"{path} is {_short(old)} there and {_short(new)} here"
        for path, old, new in _config_differences(_as_read_now(there), here["config"], defaults)
        if not any(path == field or path.startswith(f"{field}.") for field in HOW)
    ]


def _as_read_now(there: Mapping[str, Any]) -> dict[str, Any]:
    """The config of `there`, with the defaults of fields that did not exist then, also in items of lists. A config that is no longer valid
    is returned unchanged.
    """
    config = upgrade_stored(there["recipe"], there["config"])
    try:
        return RECIPES[there["recipe"]].schema.model_validate(config).model_dump(mode="json")
    except (KeyError, ValidationError):
        return config


def sampled_digest(folder: Path) -> str:
    """SHA-256 over names and sizes of a model's files and over the first and last megabyte of each, so that weights of many
    gigabytes need not be read whole.
    """
    whole = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = file.stat().st_size
        whole.update(f"{file.relative_to(folder)}\0{size}\0".encode())
        with file.open("rb") as stream:
            whole.update(stream.read(_SAMPLE_BYTES))
            stream.seek(max(0, size - _SAMPLE_BYTES))
            whole.update(stream.read(_SAMPLE_BYTES))
    return whole.hexdigest()


@cache
def code_digest() -> str:
    """SHA-256 of the trainer's own source files, read once: runs that train together are of one program."""
    root, whole = Path(trainer.__file__).parent, hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        whole.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return whole.hexdigest()


def _config_differences(there: Any, here: Any, default: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Path and both values of each difference. `default` is the default at `path`: _UNKNOWN below a list or in a section that is off."""
    if not (isinstance(there, dict) and isinstance(here, dict)):
        return [] if there == here else [(path, there, here)]
    found = []
    for key, mine in here.items():
        usual = default.get(key, _UNKNOWN) if isinstance(default, dict) else _UNKNOWN
        theirs = there.get(key, usual)
        if (
            theirs is not _UNKNOWN
        ):  # else a field whose default is not known here: another version of the program added it
            found += _config_differences(theirs, mine, usual, f"{path}.{key}" if path else key)
    return found


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."

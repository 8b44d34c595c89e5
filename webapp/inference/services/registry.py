"""Writes of the model registry."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from trainer.contracts import ModelFacts
from webapp.accounts.models import Membership, Workspace
from webapp.core import audit
from webapp.core.problems import Conflict, Invalid
from webapp.inference import tokenizers
from webapp.inference.models import RegisteredModel

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
MAX_JSON_BYTES = 20_000_000
MAX_NAME = 120
_OF_ARCHITECTURE = ("model_type", "hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings")


def register(membership: Membership, *, name: str, source: str, path: str, description: str = "") -> RegisteredModel:
    """Adds a local directory or a hub id under a name. Raises Invalid at `name`, `source` or `path`.

    A local directory must hold what training needs: config.json, safetensors weights and a tokenizer with a chat
    template. A hub id is only checked for its form: the machine that trains fetches it, and it may not be this one.
    """
    name = named(name, "model")
    if source == RegisteredModel.Source.LOCAL:
        path, facts = _found(membership, path)
    elif source == RegisteredModel.Source.HUB:
        if not HUB_ID.fullmatch(path):
            raise Invalid("This is not a hub id.", {"path": "must look like owner/name"})
        facts = {}
    else:
        raise Invalid("The source is not known.", {"source": "must be local or hub"})
    return _add(membership, name=name, source=source, path=path, description=description, facts=facts)


def _found(membership: Membership, path: str) -> tuple[str, dict[str, Any]]:
    """The directory with `~` written out and links followed, and what it says of itself. Raises Invalid at `path`."""
    try:
        folder = Path(path).expanduser()
        if not membership.user.is_administrator:  # whoever runs the server may read it all anyway
            folder = _within_roots(folder)
        return str(folder), inspect(folder)
    except (OSError, RuntimeError) as error:  # closed to us, a name too long for any disk, nobody of that name
        reason = getattr(error, "strerror", None) or str(error)
        raise Invalid("The directory cannot be used.", {"path": f"cannot be read: {reason}"}) from error


def _within_roots(folder: Path) -> Path:
    """The directory with its links followed, if it and all its files lie within MODEL_ROOTS.

    Raises Invalid at `path`, in the same words for what is not there and for what is not for them: the answer tells
    nobody which paths the server has.
    """
    with suppress(OSError):  # what is closed to this server is refused like what is not there
        if folder.is_absolute() and (found := folder.resolve()).is_dir():
            roots = [root.resolve() for root in map(Path, settings.MODEL_ROOTS)]
            files = [found, *(file.resolve() for file in found.iterdir())] if _is_under(found, roots) else []
            if files and all(_is_under(file, roots) for file in files):
                return found
    named = ", ".join(map(str, settings.MODEL_ROOTS))
    reason = (
        f"is no directory of models here: they lie in {named}. Ask an administrator to put it there or to register it"
    )
    raise Invalid("The directory cannot be used.", {"path": reason})


def _is_under(path: Path, roots: list[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _add(membership: Membership, **fields: Any) -> RegisteredModel:
    try:
        with transaction.atomic():
            model = RegisteredModel.objects.create(workspace=membership.workspace, **fields)
            audit.record(membership, membership.user, "model.registered", model, name=model.name, source=model.source)
    except IntegrityError as error:
        raise Invalid("The name is taken.", {"name": "another model of this workspace has it"}) from error
    return model


def inspect(folder: Path) -> dict[str, Any]:
    """What the directory says of itself. Raises Invalid at `path` with the first thing that is missing."""
    if not folder.is_absolute():
        raise Invalid("The directory cannot be used.", {"path": "must be an absolute path"})
    if not folder.is_dir():
        raise Invalid("The directory cannot be used.", {"path": f"{folder} is not a directory the server can read"})
    if (folder / "adapter_config.json").is_file() and not (folder / "config.json").is_file():
        reason = "holds an adapter, which is nothing without its base model; give the directory of a whole model (peft merges)"
        raise Invalid("The directory cannot be used.", {"path": reason})
    config = _json(folder, "config.json")
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise Invalid("The directory cannot be used.", {"path": "holds no *.safetensors weights"})
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise Invalid("The directory cannot be used.", {"path": "holds no tokenizer (tokenizer.json)"})
    if not (folder / "chat_template.jinja").is_file() and not _json(folder, "tokenizer_config.json").get(
        "chat_template"
    ):
        reason = "its tokenizer has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)"
        raise Invalid("The directory cannot be used.", {"path": reason})
    if why := _misfit(folder, config):
        raise Invalid("The directory cannot be used.", {"path": why})
    facts = {key: config[key] for key in _OF_ARCHITECTURE if isinstance(config.get(key), int | str)}
    architectures = config.get("architectures")
    if isinstance(architectures, list) and architectures:
        facts["architecture"] = str(architectures[0])
    known = {tokenizers.FACT: tokenizers.digest(folder)}  # so that another one is noticed
    return {**facts, **known, "weight_bytes": sum(file.stat().st_size for file in weights)}


def _misfit(folder: Path, config: dict[str, Any]) -> str:
    try:
        return tokenizers.problem(folder, config.get("vocab_size"))
    except ValueError as error:
        return f"its tokenizer.json cannot be read: {error}"


def _json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError("too large")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not an object")
    except FileNotFoundError as error:
        raise Invalid("The directory cannot be used.", {"path": f"holds no {name}"}) from error
    except (OSError, ValueError) as error:
        raise Invalid("The directory cannot be used.", {"path": f"its {name} cannot be read: {error}"}) from error
    return found


def add_output(
    workspace: Workspace, stem: str, ending: str, *, path: str, facts: ModelFacts, digest: str, base: RegisteredModel
) -> RegisteredModel:
    """A row for what a run has left in `path`. Its name is `stem`, cut to fit, `ending`, and a number where that is taken."""
    fields = {"source": RegisteredModel.Source.RUN, "path": path, "base": base, **_told(facts, digest, base)}
    for name in _free_names(stem, ending):
        try:
            with transaction.atomic():
                model = RegisteredModel.objects.create(workspace=workspace, name=name, **fields)
        except IntegrityError:
            continue
        audit.record(workspace, None, "model.registered", model, name=name, source=model.source, role=model.role)
        return model
    raise AssertionError("names never run out")


def renew_output(model: RegisteredModel, *, facts: ModelFacts, digest: str) -> None:
    """The run has written the folder anew: a resumed one ends a second time."""
    RegisteredModel.objects.filter(pk=model.pk).update(**_told(facts, digest, model.base))


def _told(facts: ModelFacts, digest: str, base: RegisteredModel | None) -> dict[str, Any]:
    weights = sum(file.bytes for file in facts.files if file.path.endswith(".safetensors"))
    inherited = {key: value for key, value in (base.facts if base else {}).items() if key in _OF_ARCHITECTURE}
    if tokenizer := tokenizers.digest_of(facts.files):
        inherited[tokenizers.FACT] = tokenizer
    told = {**inherited, "weight_bytes": weights, "bytes": sum(file.bytes for file in facts.files)}
    return {"role": facts.role, "format": facts.format, "head": facts.head, "digest": digest, "facts": told}


def _free_names(stem: str, ending: str) -> Iterator[str]:
    for number in count(1):
        last = ending if number == 1 else f"{ending}-{number}"
        yield stem[: MAX_NAME - len(last)] + last


def change_model(
    membership: Membership, model: RegisteredModel, *, name: str | None = None, description: str | None = None
) -> None:
    """Changes what is given. Configs of runs that began with it keep the old name, and their rows the model.

    Raises Invalid at `name`.
    """
    before = model.name
    if name is not None:
        model.name = named(name, "model")
    if description is not None:
        model.description = description
    try:
        with transaction.atomic():
            model.save(update_fields=["name", "description"])
            audit.record(membership, membership.user, "model.changed", model, name=model.name, before=before)
    except IntegrityError as error:
        raise Invalid("The name is taken.", {"name": "another model of this workspace has it"}) from error


@transaction.atomic
def archive_model(membership: Membership, model: RegisteredModel) -> None:
    """Nobody is offered it any more; its files and what refers to it stay."""
    model.archived_at = timezone.now()
    if RegisteredModel.objects.filter(pk=model.pk, archived_at=None).update(archived_at=model.archived_at):
        audit.record(membership, membership.user, "model.archived", model, name=model.name)


@transaction.atomic
def restore_model(membership: Membership, model: RegisteredModel) -> None:
    """Offers an archived model again."""
    if RegisteredModel.objects.filter(pk=model.pk).exclude(archived_at=None).update(archived_at=None):
        audit.record(membership, membership.user, "model.restored", model, name=model.name)
    model.archived_at = None


def delete(membership: Membership, model: RegisteredModel) -> None:
    """Takes the model off the list; its files stay. Raises Conflict while runs, endpoints or other models refer to it."""
    try:
        with transaction.atomic():
            audit.record(membership, membership.user, "model.deleted", model, name=model.name)
            model.delete()
    except ProtectedError as error:
        reason = "Runs or other models start from this model, or an endpoint answers with it, so it stays on the list."
        raise Conflict(reason, code="in_use") from error


def named(name: str, thing: str) -> str:
    """`name` without needless blanks. Raises Invalid at `name`."""
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME:
        raise Invalid(f"The {thing} needs a name.", {"name": "must have 1 to 120 characters"})
    return name

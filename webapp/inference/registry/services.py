"""Writes of the model registry."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from trainer.contracts import ModelFacts
from webapp.accounts.models import Membership, Workspace
from webapp.core import archiving
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.webhooks.services import announce

from .. import names
from ..folders import inspection, stored, tokenizers
from ..folders.stored import Placed
from ..models import RegisteredModel
from ..trials import services as trials

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")


def register(
    membership: Membership,
    *,
    name: str,
    source: str,
    path: str,
    description: str = "",
    head: str = "",
    base: int | None = None,
) -> RegisteredModel:
    """Adds a local directory or a hub id under a name. Raises Invalid at `name`, `source`, `path`, `head` or `base`.

    A local directory holds a whole model (config.json, safetensors weights, a tokenizer with a chat template) or an adapter. An adapter
    needs `base`, the id of the model that it was trained on. The directory shows whether the model scores texts or writes them. Of a
    hub id only the form is checked, because the machine that trains fetches the model: `head` says whether it scores or writes.
    """
    name = names.checked(name, "model")
    if source == RegisteredModel.Source.LOCAL:
        path, found = _found(membership, path, _base(membership, base))
        if head and head != found["head"]:
            raise Invalid("The directory cannot be used.", {"head": inspection.UNLIKE[found["head"]]})
    elif source == RegisteredModel.Source.HUB:
        found = _of_hub(path, head, base)
    else:
        raise Invalid("The source is not known.", {"source": "must be local or hub"})
    return _add(membership, name=name, source=source, path=path, description=description, **found)


def register_made(membership: Membership, *, name: str, path: str, description: str) -> RegisteredModel:
    """Adds a model that the program has made in a folder of its own, wherever models may lie that people register.

    Raises Invalid at `name` or `path`.
    """
    found = inspection.inspect(Path(path))
    source = RegisteredModel.Source.LOCAL
    return _add(
        membership,
        name=names.checked(name, "model"),
        source=source,
        path=path,
        description=description,
        **found,
    )


def register_sent(membership: Membership, *, name: str, path: str, description: str, files: Placed) -> RegisteredModel:
    """Adds a model whose files a program has sent to the artifact store, each to its own path. `path` is the name under which processes ask
    for the model; there is no such folder. Raises StoreAway, StoreLost, OSError, and Invalid at `name` or `path`.
    """
    with tempfile.TemporaryDirectory() as outlined:
        stored.outline(files, Path(outlined))
        found = inspection.inspect(Path(outlined))
    return _add(
        membership,
        name=names.checked(name, "model"),
        source=RegisteredModel.Source.LOCAL,
        path=path,
        description=description,
        stored={"files": [file.model_dump() for file in files.files], stored.APART: files.place},
        **found,
    )


def _of_hub(path: str, head: str, base: int | None) -> dict[str, Any]:
    if not HUB_ID.fullmatch(path):
        raise Invalid("This is not a hub id.", {"path": "must look like owner/name"})
    if head not in ("", *RegisteredModel.Head.values):
        raise Invalid("The head is not known.", {"head": "must be lm or scalar"})
    if base is not None:
        reason = "leave it empty: an adapter is registered from a directory, so fetch it first"
        raise Invalid("Only a directory can hold an adapter.", {"base": reason})
    return {"head": head or RegisteredModel.Head.LM}


def _base(membership: Membership, base: int | None) -> RegisteredModel | None:
    if base is None:
        return None
    found = RegisteredModel.objects.filter(workspace=membership.workspace, pk=base).first()
    if found is None:
        raise Invalid("There is no such base.", {"base": "this workspace has no such model"})
    return found


def _found(membership: Membership, path: str, base: RegisteredModel | None) -> tuple[str, dict[str, Any]]:
    """The directory with `~` written out, and what it holds. Raises Invalid at `path` or `base`."""
    try:
        folder = Path(path).expanduser()
        if not membership.user.is_administrator:  # an administrator runs the server and may read all its files
            folder = _within_roots(folder)
        return str(folder), inspection.inspect(folder, base)
    except (OSError, RuntimeError) as error:  # closed to us, a name too long for any disk, nobody of that name
        reason = getattr(error, "strerror", None) or str(error)
        raise Invalid("The directory cannot be used.", {"path": f"cannot be read: {reason}"}) from error


def _within_roots(folder: Path) -> Path:
    """The directory with its links followed, if it and all its files lie within MODEL_ROOTS.

    Raises Invalid at `path`, in the same words for a directory that is not there and for one that is not allowed: so the answer tells
    nobody which paths the server has.
    """
    with suppress(OSError):  # a directory that this server may not read is refused like one that is not there
        if folder.is_absolute() and (found := folder.resolve()).is_dir():
            roots = [root.resolve() for root in map(Path, settings.MODEL_ROOTS)]
            files = [found, *(file.resolve() for file in found.iterdir())] if _is_under(found, roots) else []
            if files and all(_is_under(file, roots) for file in files):
                return found
    named = ", ".join(map(str, settings.MODEL_ROOTS))
    reason = f"is not in a folder for models; these are {named}. Ask an administrator to put it there or to register it"
    raise Invalid("The directory cannot be used.", {"path": reason})


def _is_under(path: Path, roots: list[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _add(membership: Membership, **fields: Any) -> RegisteredModel:
    try:
        with transaction.atomic():
            model = RegisteredModel.objects.create(workspace=membership.workspace, **fields)
            audit.record(membership, membership.user, "model.registered", model, name=model.name, source=model.source)
            announce(membership.workspace_id, "model.registered", _facts(model), by=membership.user_id)
            trials.start(model)
    except IntegrityError as error:
        raise Invalid("The name is taken.", {"name": "another model of this workspace has it"}) from error
    return model


def _facts(model: RegisteredModel) -> dict[str, object]:
    return {"model": model.pk, "name": model.name, "source": model.source, "role": model.role}


def add_output(
    workspace: Workspace,
    stem: str,
    ending: str,
    *,
    path: str,
    facts: ModelFacts,
    digest: str,
    base: RegisteredModel,
    run: int,
) -> RegisteredModel:
    """A row for the model that the run with this id has written to `path`. Its name is `stem`, cut to fit, `ending`, and a number if the name is taken."""
    fields = {"source": RegisteredModel.Source.RUN, "path": path, "base": base, **_told(facts, digest, base)}
    for name in _free_names(stem, ending):
        try:
            with transaction.atomic():
                model = RegisteredModel.objects.create(workspace=workspace, name=name, **fields)
        except IntegrityError:
            continue
        audit.record(workspace, None, "model.registered", model, name=name, source=model.source, role=model.role)
        announce(workspace.pk, "model.registered", _facts(model) | {"run": run})
        return model
    raise AssertionError("names never run out")


def renew_output(model: RegisteredModel, *, facts: ModelFacts, digest: str) -> None:
    """The run has written the folder again: a resumed one ends a second time."""
    RegisteredModel.objects.filter(pk=model.pk).update(**_told(facts, digest, model.base))


def _told(facts: ModelFacts, digest: str, base: RegisteredModel | None) -> dict[str, Any]:
    weights = sum(file.bytes for file in facts.files if file.path.endswith(".safetensors"))
    inherited = {key: value for key, value in (base.facts if base else {}).items() if key in inspection.OF_ARCHITECTURE}
    if tokenizer := tokenizers.digest_of(facts.files):
        inherited[tokenizers.FACT] = tokenizer
    told = {**inherited, "weight_bytes": weights, "bytes": sum(file.bytes for file in facts.files)}
    return {"role": facts.role, "format": facts.format, "head": facts.head, "digest": digest, "facts": told}


def _free_names(stem: str, ending: str) -> Iterator[str]:
    for number in count(1):
        last = ending if number == 1 else f"{ending}-{number}"
        yield stem[: names.MAX_NAME - len(last)] + last


def change_model(
    membership: Membership, model: RegisteredModel, *, name: str | None = None, description: str | None = None
) -> None:
    """Changes the fields that are given. Configs of runs that began with the model keep its old name; their rows point at the model.

    Raises Invalid at `name`.
    """
    before, given = model.name, []
    if name is not None:
        model.name = names.checked(name, "model")
        given.append("name")
    if description is not None:
        model.description = description
        given.append("description")
    try:
        with transaction.atomic():
            model.save(update_fields=given)  # somebody else may change the other one at the same time
            audit.record(membership, membership.user, "model.changed", model, name=model.name, before=before)
    except IntegrityError as error:
        raise Invalid("The name is taken.", {"name": "another model of this workspace has it"}) from error


@transaction.atomic
def archive_model(membership: Membership, model: RegisteredModel) -> None:
    """No form offers the model any more; its files stay, and so do the rows that refer to it. Raises Conflict while an alias points at it."""
    RegisteredModel.objects.select_for_update().get(pk=model.pk)  # no alias can be moved to it meanwhile
    if names := [str(alias) for alias in model.aliases.all()]:
        raise Conflict(f"{', '.join(names)} points at this model. Move or remove the alias first.", code="in_use")
    archiving.archive(membership, model, "model")


def restore_model(membership: Membership, model: RegisteredModel) -> None:
    """Offers an archived model again."""
    archiving.restore(membership, model, "model")


def delete(membership: Membership, model: RegisteredModel) -> None:
    """Takes the model off the list; its files stay. Raises Conflict while runs, endpoints, other models or an alias refer to it."""
    try:
        with transaction.atomic():
            audit.record(membership, membership.user, "model.deleted", model, name=model.name)
            # first: what people have said about watching it goes with it
            announce(membership.workspace_id, "model.deleted", _facts(model), by=membership.user_id)
            model.delete()
    except ProtectedError as error:
        reason = (
            "This model stays on the list, because a run or another model starts from it, an endpoint uses it, or an alias "
            "points at it."
        )
        raise Conflict(reason, code="in_use") from error

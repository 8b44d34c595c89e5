"""Names under which programs keep versions of models. A version whose files a run here can load joins the registry of models."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone

from trainer.contracts.model_folder import FILE_NAME
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Invalid, Problem
from webapp.experiments.access import may_read, may_write
from webapp.experiments.models import Artifact, Run
from webapp.experiments.outputs import artifacts
from webapp.inference.folders.stored import Placed, placed_at
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import services as registry

from . import files, services
from .models import FamilyVersion, LoggedRun, ModelFamily, SavedModel

LONGEST_NAME, LONGEST_TEXT, MOST_TAGS, MOST_ALIASES = 250, 8_000, 1_000, 200
NO_FILE_LEFT = "the folder has as many models in the registry as files: log the folder again under another name"
FITS = re.compile(FILE_NAME)


class Taken(Problem):
    """There is a family of this name already."""


class VersionFiles(NamedTuple):
    """The files of a version: those of the run below `path`."""

    row: LoggedRun
    path: str
    saved: SavedModel | None = None


def family(membership: Membership, name: str, *, write: bool) -> ModelFamily:
    """Raises Http404, PermissionDenied."""
    allowed = may_write(membership) if write else may_read(membership)
    found = ModelFamily.objects.filter(workspace_id=allowed.workspace_id, name=name).first()
    if found is None:
        raise Http404("no such family")
    return found


def versions(workspace_id: int) -> "QuerySet[FamilyVersion]":
    rows = FamilyVersion.objects.select_related("family", "row__run", "saved", "model")
    return rows.filter(family__workspace_id=workspace_id)


def version(membership: Membership, name: str, number: str, *, write: bool) -> FamilyVersion:
    """Raises Http404, PermissionDenied."""
    allowed = may_write(membership) if write else may_read(membership)
    wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
    found = versions(allowed.workspace_id).filter(family__name=name, number=wanted).first()
    if found is None:
        raise Http404("no such version")
    return found


def make(membership: Membership, name: str, description: str, tags: Mapping[str, str]) -> ModelFamily:
    """Raises Invalid at `name` or a tag, and Taken."""
    may_write(membership)
    _check_name(name)
    kept = services.merged({}, tags, "tags", MOST_TAGS, services.LONGEST_TAG)
    told = {"description": _text(description), "tags": kept}
    with _unique(name), transaction.atomic():
        found = ModelFamily.objects.create(workspace=membership.workspace, name=name, **told)
        audit.record(membership, membership.user, "model_family.made", found, name=name)
    return found


def rename(membership: Membership, found: ModelFamily, name: str) -> ModelFamily:
    """Raises Invalid at `name`, and Taken."""
    _check_name(name)
    with _unique(name), transaction.atomic():
        audit.record(membership, membership.user, "model_family.renamed", found, name=name, before=found.name)
        found.name = name
        found.save(update_fields=["name", "updated_at"])
    return found


def describe(
    found: ModelFamily | FamilyVersion,
    *,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    without: Iterable[str] = (),
) -> None:
    """Raises Invalid."""
    with transaction.atomic():
        kind = type(found)
        held = kind._default_manager.select_for_update(no_key=True, of=("self",)).get(pk=found.pk)
        gone = set(without)
        left: dict[str, Any] = {key: value for key, value in held.tags.items() if key not in gone}
        found.tags = services.merged(left, tags or {}, "tags", MOST_TAGS, services.LONGEST_TAG)
        found.description = held.description if description is None else _text(description)
        found.save(update_fields=["description", "tags", "updated_at"])


def point(membership: Membership, found: ModelFamily, alias: str, number: int | None) -> None:
    """Lets an alias of the family point at a version; None takes the alias away. Raises Invalid at `alias`."""
    if not 0 < len(alias) <= LONGEST_NAME:
        raise Invalid("This alias cannot be used.", {"alias": f"has 1 to {LONGEST_NAME} characters"})
    with transaction.atomic():
        held = ModelFamily.objects.select_for_update(no_key=True).get(pk=found.pk)
        kept = {name: place for name, place in held.aliases.items() if name != alias}
        if number is not None:
            kept[alias] = number
        if len(kept) > MOST_ALIASES:
            raise Invalid("There are too many aliases.", {"alias": f"a model has at most {MOST_ALIASES}"})
        held.aliases = kept
        held.save(update_fields=["aliases", "updated_at"])
        audit.record(
            membership, membership.user, "model_family.alias", held, name=held.name, alias=alias, version=number
        )


def move(membership: Membership, found: FamilyVersion, stage: str, *, alone: bool) -> None:
    """Gives a version this stage. `alone`: versions that have it become archived, so that two moves at once leave one there."""
    with transaction.atomic():
        held = ModelFamily.objects.select_for_update(no_key=True).get(pk=found.family_id)
        if alone:
            others = held.versions.filter(stage=stage).exclude(pk=found.pk)
            others.update(stage="Archived", updated_at=timezone.now())
        found.stage = stage
        found.save(update_fields=["stage", "updated_at"])
        audit.record(
            membership, membership.user, "model_family.stage", held, name=held.name, version=found.number, stage=stage
        )


def delete(membership: Membership, found: ModelFamily) -> None:
    """Deletes a family with all its versions. Their files, and what joined the registry of models, stay."""
    with transaction.atomic():
        audit.record(membership, membership.user, "model_family.deleted", found, name=found.name)
        found.delete()


def delete_version(membership: Membership, found: FamilyVersion) -> None:
    with transaction.atomic():
        held = ModelFamily.objects.select_for_update(no_key=True).get(pk=found.family_id)
        held.aliases = {name: place for name, place in held.aliases.items() if place != found.number}
        held.save(update_fields=["aliases", "updated_at"])
        audit.record(
            membership, membership.user, "model_family.version_deleted", held, name=held.name, version=found.number
        )
        found.delete()


def add(
    membership: Membership,
    found: ModelFamily,
    place: VersionFiles,
    *,
    source: str,
    description: str,
    tags: Mapping[str, str],
) -> FamilyVersion:
    """A version made of files of a run. Numbers are never given again. Raises Invalid at `source`."""
    below = f"{files.FOLDER}{place.path}/" if place.path else files.FOLDER
    there = Artifact.objects.filter(run_id=place.row.run_id, role=files.FILE, path__startswith=below)
    if not there.exists():
        raise Invalid(
            "The version has no files.", {"source": f"the run has no files below {place.path or 'its folder'}"}
        )
    told = {
        "description": _text(description),
        "tags": services.merged({}, tags, "tags", MOST_TAGS, services.LONGEST_TAG),
    }
    with transaction.atomic():
        held = ModelFamily.objects.select_for_update(no_key=True).get(pk=found.pk)
        held.last_number += 1
        held.save(update_fields=["last_number", "updated_at"])
        keeper = _keeper(place, there, below)
        model, why_not = _joined(membership, held, place, there) if keeper else (None, NO_FILE_LEFT)
        made = FamilyVersion.objects.create(
            family=held,
            number=held.last_number,
            row=place.row,
            saved=place.saved,
            path=place.path,
            source=source,
            model=model,
            why_not=why_not,
            **told,
        )
        if keeper and model is not None:  # so a run whose files the registry names is not deleted under it
            Artifact.objects.filter(pk=keeper.pk).update(registered=model)
        audit.record(membership, membership.user, "model_family.version", held, name=held.name, version=made.number)
    return made


def _keeper(place: VersionFiles, there: "QuerySet[Artifact]", below: str) -> Artifact | None:
    """The file that will lead from the run to the model of a version: one to which no model of an earlier version leads. None: there is none
    left. The run stays locked, because two versions of its files may be made at once."""
    Run.objects.select_for_update(no_key=True).get(pk=place.row.run_id)
    free = there.filter(registered=None)
    return free.filter(path=f"{below}config.json").first() or free.order_by("path").first()


def _joined(
    membership: Membership, family: ModelFamily, place: VersionFiles, there: "QuerySet[Artifact]"
) -> tuple[RegisteredModel | None, str]:
    """The model of the registry that was made of the files, or why there is none. Only safetensors and JSON are ever loaded."""
    name = f"{family.name} {family.last_number}"
    told = f"Version of {place.row.run} that another program has registered"
    home = artifacts.folder(place.row.run_id)
    try:
        with transaction.atomic():
            if not (sent := _sent(place, there)):
                folder = home / files.FOLDER / place.path
                return registry.register_made(membership, name=name, path=str(folder), description=told), ""
            # a later version may be of the same folder of the run, with other files: each has a name of its own
            path = home / "versions" / f"{family.pk}-{family.last_number}"
            return registry.register_sent(membership, name=name, path=str(path), description=told, files=sent), ""
    except Problem as error:
        if error.status == 503:  # the storage is away for a moment: the program asks again
            raise
        return None, "; ".join(error.fields.values()) or error.message


def _sent(place: VersionFiles, there: "QuerySet[Artifact]") -> Placed | None:
    """The files in the artifact store, by their names in the folder; None if none is there. Raises Invalid if only some are. A name that
    the store takes for no model (`.gitattributes`) is left out."""
    below = f"{files.FOLDER}{place.path}".rstrip("/")
    rows = list(there.order_by("path"))
    found = [row for row in rows if row.files]
    if found and len(found) < len(rows):
        raise Invalid(
            "Some files are not in object storage.",
            {"source": "log the files again: some are of before object storage"},
        )
    named = [(row.path.removeprefix(f"{below}/"), row) for row in found]
    fit = [(path, row) for path, row in named if FITS.fullmatch(path)]
    listed = [{**row.files[0], "path": path} for path, row in fit if artifacts.place(row).endswith(f"/{row.path}")]
    if found and not listed:
        raise Invalid(
            "The path has other letters.", {"source": f"{place.path} has other letters than A to Z, digits, _, - and ."}
        )
    return placed_at(f"runs/{place.row.run_id}/{below}", listed, apart=True) if found else None


def _check_name(name: str) -> None:
    if (
        not 0 < len(name.strip()) == len(name) <= LONGEST_NAME
        or any(sign in name for sign in "/:")
        or not name.isprintable()
    ):
        why = f"has 1 to {LONGEST_NAME} characters, none of them a slash or a colon, and no space at its ends"
        raise Invalid("This name cannot be used.", {"name": why})


def _text(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise Invalid("The description is too long.", {"description": f"has at most {LONGEST_TEXT:,} characters"})
    return text


@contextmanager
def _unique(name: str) -> Iterator[None]:
    """Tells a second family of one name as Taken."""
    try:
        yield
    except IntegrityError as error:
        raise Taken(f"Registered model '{name}' already exists.", code="taken", status=409) from error

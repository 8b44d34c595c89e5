"""Turns a model that a run has trained to judge, or to write rubrics, into a judge version: with its endpoint, and with the prompt and the
reader with which it was trained."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

from django.db import transaction

from trainer.config import RECIPES, ConfigInvalid, resolve, upgrade_stored
from trainer.judges.spec import BaseSpec
from trainer.judges.spec import resolve as judge_spec
from webapp.accounts.models import Membership
from webapp.core.problems import Conflict, Invalid
from webapp.inference.endpoints import services as endpoints
from webapp.inference.folders.stored import missing_folder
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.judges.services import create_judge, version_digest
from webapp.judging.models import MAX_NAME, JudgeVersion

from ..models import Run

Row = TypeVar("Row")
MOST_NAMES = 100  # tried, before somebody must give one


@transaction.atomic
def use(membership: Membership, model: RegisteredModel, name: str = "") -> JudgeVersion:
    """The first version of a judge whose answers `model` gives, with weights on this installation; without a `name` it has the model's.
    Asked twice, it returns the existing version.

    Raises Conflict if the model is none of a run that trains judges, or its files are gone, Invalid at `name`.
    """
    spec = trained_as(model)
    if model.archived_at is not None:
        raise Conflict(f"The model {model} is archived. Restore it on its page.", "archived")
    if folder := missing_folder(model):
        raise Conflict(f"The files of {model} are gone: there is no folder {folder}.", "gone")
    # the lock: two clicks at once must make one judge
    RegisteredModel.objects.select_for_update(no_key=True).get(pk=model.pk)
    endpoint = _endpoint(membership, model)
    digest = version_digest(spec, endpoint)
    rows = JudgeVersion.objects.filter(judge__workspace=membership.workspace, judge__archived_at=None, digest=digest)
    if found := rows.select_related("judge", "endpoint").order_by("id").first():
        return found
    raw = spec.model_dump(mode="json")
    note = f"Asked as {model} was trained."

    def make(wanted: str) -> JudgeVersion:
        return create_judge(membership, name=wanted, spec=raw, endpoint=endpoint, note=note[:300])

    return make(name) if name.strip() else _free(model.name, MAX_NAME, make)


def trained_as(model: RegisteredModel) -> BaseSpec:
    """The spec of the judge that the model was trained to be. Raises Conflict if it is none, or nobody knows."""
    artifact = getattr(model, "artifact", None)
    if artifact is None:
        raise Conflict(
            f"No run of this installation has trained {model}, so it is not known how to ask it.", "not_trained"
        )
    spec = _asked_as(artifact.run, model.role)
    if spec is None:
        raise Conflict(f"{artifact.run} trains no judges that a kind of judge asks.", "no_judge")
    return judge_spec(spec)


def _asked_as(run: Run, role: str) -> dict[str, Any] | None:
    if run.recipe not in RECIPES:
        return None
    try:
        return resolve(run.recipe, upgrade_stored(run.recipe, run.config)).asked_as(role)
    except ConfigInvalid as error:
        raise Conflict(f"The config of {run} cannot be read any more: {error}", "config") from error


def _endpoint(membership: Membership, model: RegisteredModel) -> Endpoint:
    """The oldest endpoint that answers with the model, else a new one."""
    mine = Endpoint.objects.filter(workspace=membership.workspace, registered_model=model, archived_at=None)
    if found := mine.order_by("id").first():
        return found
    return _free(
        model.name,
        120,
        lambda name: endpoints.create_endpoint(membership, "local", name=name, registered_model=model.pk),
    )


def _free(name: str, longest: int, make: Callable[[str], Row]) -> Row:
    """The result of `make` under the name or, if that is taken, under the first free name with a number behind it."""
    for wanted in _names(name, longest):
        try:
            return make(wanted)
        except Invalid as problem:
            taken = problem
            if "name" not in problem.fields:
                raise
    raise taken


def _names(name: str, longest: int) -> Iterator[str]:
    yield name[:longest]
    for number in count(2):
        if number > MOST_NAMES:
            return
        yield f"{name[: longest - 5]} {number}"

"""The options of the fields in a run's form that name a thing: models, judges, reward services, functions.

A config names things by their names, so the value of an option is a name too. A chosen value that is not offered (any more) stays in its
field, and the check reports it.
"""

from collections.abc import Callable, Iterator
from functools import partial

from trainer import reward_process
from trainer.config import Recipe
from trainer.config.rewards.parts import PROTOCOL_KINDS
from webapp.annotation.projects import grading
from webapp.core.forms.formtree import EmptyChoice, FormGroup, Input
from webapp.evaluation.licences import licence
from webapp.inference.endpoints import queries as endpoint_queries
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.inference.promotion import queries as promotion
from webapp.judging import queries as judging

MOST_OFFERED = 200
Options = tuple[tuple[str, str], ...]

EVERY_KIND = tuple(dict.fromkeys(kind for kinds in PROTOCOL_KINDS.values() for kind in kinds))
NOTHING = {
    "models": EmptyChoice("No model that writes text is registered.", "/models/new", "Register one"),
    "reward_models": EmptyChoice(
        "No model that scores texts is there yet: recipe “Reward model” trains one from comparisons.",
        "/runs/new?recipe=reward_model",
        "Train one",
    ),
    "judge_names": EmptyChoice("No judge of this workspace can do this.", "/judges/new", "Make one"),
    "endpoints": EmptyChoice("This workspace has no reward service.", "/models/endpoints/new?kind=reward", "Name one"),
    "functions": EmptyChoice(
        "No function is allowed here. The person who runs this installation must install its package and name it in "
        f"{reward_process.ALLOWED}."
    ),
}


EMPTY = {"grading_projects": f"{grading.NAME} (made for it)"}


def fill(workspace_id: int, drawn: FormGroup, recipe: Recipe) -> FormGroup:
    """Gives every field that names a row its options. One query for each list, for any number of fields."""
    known: dict[tuple[str, ...], Options] = {}
    for group in drawn.every_group():
        for each in group.inputs:
            if each.source:
                key, read = _reader(workspace_id, each, group, recipe)
                if key not in known:
                    known[key] = tuple(read())
                each.options = known[key]
                each.empty = EMPTY.get(key[0], "")
                _without_default(each)
                each.nothing = None if each.options else NOTHING.get(_what(key))
    _licences(workspace_id, drawn)
    return drawn


def _without_default(field: Input) -> None:
    """If the default is a row that is not offered, this workspace may never have had it: nobody has chosen or changed it."""
    if not field.default or field.default in dict(field.options):
        return
    if field.value == field.default:
        field.value = ""
    if field.was == field.default:
        field.changed = False


def _licences(workspace_id: int, drawn: FormGroup) -> None:
    """Adds what is known about each chosen judge."""
    chosen = [
        each for each in drawn.every_input() if each.source.startswith("judge_names") and each.value and each.shown
    ]
    named = {name: judging.version_named(workspace_id, name) for name in {each.value for each in chosen}}
    found = licence.licences(workspace_id, [row for row in named.values() if row is not None])
    for each in chosen:
        row = named[each.value]
        each.about = found[row.pk] if row is not None else None


def _what(key: tuple[str, ...]) -> str:
    return "reward_models" if key == ("models", RegisteredModel.Head.SCALAR) else key[0]


def _reader(
    workspace_id: int, field: Input, group: FormGroup, recipe: Recipe
) -> tuple[tuple[str, ...], Callable[[], Iterator[tuple[str, str]]]]:
    """The key of a field's list of options, and the function that reads it."""
    source, _, detail = field.source.partition(":")
    if source == "models":
        heads = next((slot.heads for slot in recipe.slots if slot.at(field.path)), ("lm",))
        return (source, *heads), partial(_models, workspace_id, heads)
    if source == "judge_names":
        kinds = tuple(detail.split(",")) if detail else _kinds(group)
        return (source, *kinds), partial(_judges, workspace_id, kinds)
    if source == "endpoints":
        return (source,), partial(_services, workspace_id)
    if source == "grading_projects":
        return (source,), partial(_grading, workspace_id)
    return (source,), _functions


def _kinds(group: FormGroup) -> tuple[str, ...]:
    """The kinds of judges that can do what the part asks of them."""
    protocol = next((each.value for each in group.inputs if each.path == f"{group.path}.protocol"), "")
    return PROTOCOL_KINDS.get(protocol, EVERY_KIND)


def _models(workspace_id: int, heads: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for alias in promotion.aliases(workspace_id).filter(model__head__in=heads)[:MOST_OFFERED]:
        yield str(alias), f"{alias} · points at {alias.model.name}"
    rows = RegisteredModel.objects.filter(workspace_id=workspace_id, archived_at=None, head__in=heads)
    for row in rows.order_by("-id")[:MOST_OFFERED]:
        yield row.name, " · ".join([row.name, *_about(row)])


def _about(row: RegisteredModel) -> Iterator[str]:
    parameters = row.facts.get("parameters")
    if isinstance(parameters, int):
        yield f"{parameters / 1e9:.1f} B" if parameters >= 10**9 else f"{parameters / 1e6:.0f} M"
    if row.head == RegisteredModel.Head.SCALAR:
        yield "scores text"
    elif row.role and row.role != RegisteredModel.TrainedAs.POLICY:
        yield row.get_role_display().lower()
    if row.source == RegisteredModel.Source.RUN:
        yield "trained here"


def _judges(workspace_id: int, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    rows = judging.usable_versions(workspace_id, kinds).exclude(endpoint__kind=Endpoint.Kind.RECORDED)
    for row in rows[:MOST_OFFERED]:
        yield str(row), f"{row} · {row.judge.title} · {row.endpoint.name}"


def _services(workspace_id: int) -> Iterator[tuple[str, str]]:
    for row in (
        endpoint_queries.endpoints(workspace_id).filter(kind=Endpoint.Kind.REWARD).order_by("name")[:MOST_OFFERED]
    ):
        yield row.name, row.name


def _grading(workspace_id: int) -> Iterator[tuple[str, str]]:
    for row in grading.fitting(workspace_id, MOST_OFFERED):
        yield row.name, f"{row.name} · {row.version}"


def _functions() -> Iterator[tuple[str, str]]:
    for name in reward_process.allowed():
        if not reward_process.problem(name):
            yield name, name

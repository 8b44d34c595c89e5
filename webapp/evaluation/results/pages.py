"""The parts of the pages beyond the rows themselves: filters of the cases, one case in full, the config."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webapp.core.forms.formtree import Input, Tree, as_text
from webapp.core.forms.model_schemas import schema_of
from webapp.datasets.queries import examples_by_key

from ..models import Case, Evaluation
from ..recipes import RECIPES
from ..sources import judges
from ..sources import registry as sources

MAX_FACETS = 24  # of one kind
MAX_VERDICTS = 40  # of one case, in full
MAX_SHOWN = 64  # responses side by side


@dataclass(frozen=True)
class Facet:
    """One tag: `query` is the list's address with this tag switched."""

    tag: str
    words: str
    count: int
    on: bool
    query: list[str]


def facets(known: Mapping[str, int], chosen: list[str]) -> dict[str, list[Facet]]:
    """The tags by kind, those without a kind under "found"; chosen ones first, then by number of cases."""
    grouped: dict[str, list[Facet]] = {}
    for tag, count in sorted(known.items(), key=lambda item: (item[0] not in chosen, -item[1], item[0])):
        kind, colon, words = tag.partition(":")
        on = tag in chosen
        query = [each for each in chosen if each != tag] if on else [*chosen, tag]
        mine = grouped.setdefault(kind if colon else "found", [])
        if len(mine) < MAX_FACETS or on:
            mine.append(Facet(tag, words if colon else tag, count, on, query))
    return grouped


def case(row: Case) -> dict[str, Any]:
    """The case with its example, as far as it is known."""
    evaluation = row.evaluation
    key = row.subject.get("example", "")
    example = None
    if evaluation.dataset_version and key:
        example = examples_by_key(evaluation.dataset_version, [key]).get(key)
    responses = list(example.responses) if example else []
    wanted = [row.subject[side] for side in ("a", "b", "response") if row.subject.get(side)]
    if wanted:
        responses = [response for response in responses if response.id in wanted]
    hidden = {"prompt", "text"}  # shown in full above
    plain = {n: value for n, value in row.values.items() if not isinstance(value, list | dict) and n not in hidden}
    return {"case": row, "example": example, "responses": responses, "plain_values": plain} | {
        "verdicts": judges.verdicts(evaluation.workspace_id, row.values.get("verdicts", [])[:MAX_VERDICTS])
    }


def side_by_side(evaluation: Evaluation, key: str) -> dict[str, Any] | None:
    """The responses of all models to one prompt: a column for each, with its responses and their criteria. None: there are none."""
    rows = list(Case.objects.filter(evaluation=evaluation, subject__example=key).order_by("number")[:MAX_SHOWN])
    if not rows or not all("model" in row.subject for row in rows):
        return None
    example = None
    if evaluation.dataset_version:
        example = examples_by_key(evaluation.dataset_version, [key]).get(key)
    texts = {each.id: each.text for each in example.responses} if example else {}
    columns: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        text = row.values.get("text") or texts.get(row.subject.get("response", ""), "")
        columns.setdefault(row.subject["model"], []).append({"case": row, "text": text})
    order = _changed(evaluation)
    at = order.index(key) if key in order else -1
    return {
        "key": key,
        "example": example,
        "prompt": rows[0].values.get("prompt", ""),
        "columns": columns.items(),
        "before": order[at - 1] if at > 0 else "",
        "after": order[at + 1] if 0 <= at < len(order) - 1 else "",
    }


def _changed(evaluation: Evaluation) -> list[str]:
    """The examples that the report lists for comparison, in its order."""
    rows = [row for block in (evaluation.results or {}).get("blocks", []) for row in block.get("rows", [])]
    return [row[0]["compare"] for row in rows if row and row[0].get("compare")]


@dataclass(frozen=True)
class EvaluationConfigRow:
    path: str
    value: str
    default: str
    changed: bool
    name: str = ""  # of the row whose id the value is


def asks_judges(evaluation: Evaluation) -> bool:
    """Whether its config names a judge: only then can judges be asked again."""
    recipe = RECIPES.get(evaluation.recipe)
    if recipe is None:
        return False
    inputs = Tree(schema_of(recipe.schema)).draw(evaluation.config, {}).every_input()
    return any(each.source.startswith("judges") and each.value not in (None, "") for each in inputs)


def config_rows(evaluation: Evaluation) -> list[EvaluationConfigRow]:
    """The config by dotted path, with what differs from the recipe's defaults marked."""
    recipe = RECIPES.get(evaluation.recipe)
    if recipe is None:
        return [EvaluationConfigRow(path, as_text(value), "", False) for path, value in evaluation.config.items()]
    group = sources.fill(evaluation.workspace_id, Tree(schema_of(recipe.schema)).draw(evaluation.config, {}))
    return [
        EvaluationConfigRow(each.path, each.value, each.default, each.changed, _name(each))
        for each in group.every_input()
    ]


def _name(given: Input) -> str:
    return dict(given.options).get(str(given.value), "") if given.source else ""

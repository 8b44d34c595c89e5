"""Judge specs: the definition of a version of a judge. They are strict, frozen, and need no torch; the form is made from their JSON schema."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from trainer.config.errors import ConfigInvalid, FieldProblem, item_text

from .base import BaseSpec, Kind, Order, OrderedSpec
from .kinds import criteria, pairwise, rationales, rubrics
from .kinds.criteria import ChecklistSpec, CriterionSpec, LikertSpec, PointwiseSpec
from .kinds.generator import RubricGeneratorSpec
from .kinds.pairwise import PairwiseRubricSpec, PairwiseSpec
from .kinds.rationales import FlawsSpec, ReasonMatcherSpec, ReasonsSpec
from .kinds.rubrics import NecessitySpec, RubricMatcherSpec, RubricQualitySpec
from .sampling import Sampling

__all__ = ["KINDS", "BaseSpec", "JudgeSpec", "Kind", "Order", "OrderedSpec", "Sampling", "digest", "kind_of", "resolve"]

KINDS: dict[str, Kind] = {
    kind.name: kind for family in (criteria, pairwise, rubrics, rationales) for kind in family.KINDS
}
JudgeSpec = Annotated[
    CriterionSpec
    | ChecklistSpec
    | LikertSpec
    | PointwiseSpec
    | PairwiseSpec
    | PairwiseRubricSpec
    | RubricGeneratorSpec
    | RubricQualitySpec
    | RubricMatcherSpec
    | NecessitySpec
    | ReasonsSpec
    | ReasonMatcherSpec
    | FlawsSpec,
    Field(discriminator="kind"),
]
_SPEC: TypeAdapter[BaseSpec] = TypeAdapter(JudgeSpec)


def kind_of(spec: BaseSpec) -> Kind:
    return KINDS[spec.kind]


def resolve(raw: dict[str, Any]) -> BaseSpec:
    """The complete spec, with its defaults. Raises ConfigInvalid with every problem, by field."""
    name = raw.get("kind")
    if not isinstance(name, str) or name not in KINDS:
        raise ConfigInvalid([FieldProblem("kind", f"must be one of {', '.join(KINDS)}")])
    try:
        spec = _SPEC.validate_python(raw)
    except ValidationError as error:
        raise ConfigInvalid([_problem(item) for item in error.errors()]) from error
    problems = list(kind_of(spec).problems(spec))
    if problems:
        raise ConfigInvalid(problems)
    return spec


def digest(spec: BaseSpec, asked: str) -> str:
    """SHA-256, hexadecimal, of everything that decides an answer: the spec, and the endpoint with its model.

    `asked` names the endpoint and its model.
    """
    text = json.dumps([asked, spec.identity()], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _problem(item: Any) -> FieldProblem:
    path = ".".join(str(part) for part in item["loc"][1:])  # the first part only repeats the kind
    return FieldProblem(path, item_text(item))

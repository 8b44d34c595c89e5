"""Rubrics: ordered, binary-checkable criteria with points (RuscaRL, 2025; HealthBench, 2025)."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from .base import Record

Kind = Literal["hard", "principle"]
Importance = Literal["essential", "important", "optional", "pitfall"]
RubricForm = Literal["mams", "rubric_arm", "openrubrics", "touchstone"]
"""The forms of a written rubric; `trainer.judges.rubric_forms` reads each."""


class VerifierSpec(Record):
    """A deterministic check by registry name; `trainer.verifiers` validates `args`."""

    name: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)


class Criterion(Record):
    """One atomic statement about a response that is either met or not met."""

    id: str = Field(min_length=1, max_length=64)
    text: str = Field(min_length=1)
    points: float = Field(allow_inf_nan=False)
    kind: Kind = "principle"
    importance: Importance = "important"
    tags: tuple[str, ...] = ()
    verifier: VerifierSpec | None = None

    @field_validator("points")
    @classmethod
    def _non_zero(cls, points: float) -> float:
        if points == 0:
            raise ValueError("points must not be 0: a criterion of weight 0 does not change the score")
        return points


class Rubric(Record):
    """Ordered criteria with at least one positive one, so that the score has a denominator."""

    criteria: tuple[Criterion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _scorable(self) -> Self:
        if not any(criterion.points > 0 for criterion in self.criteria):
            raise ValueError("a rubric needs at least one criterion with positive points; this one has none")
        ids = [criterion.id for criterion in self.criteria]
        if len(set(ids)) != len(ids):
            raise ValueError("criterion ids must be unique within a rubric")
        return self

    @property
    def positive_points(self) -> float:
        return sum(criterion.points for criterion in self.criteria if criterion.points > 0)

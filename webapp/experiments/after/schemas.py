"""Chains, as OpenAPI shows them."""

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from webapp.datasets.api.references import DatasetRef

from ..schemas import Id


class ChainStepIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"kind": "run", "recipe": "policy", "config": {"steps": 40}}},
    )

    kind: Literal["run", "evaluation"]
    recipe: str = Field("policy", description="Of an evaluation always `policy`: of the run's held-out responses")
    config: dict[str, Any] = Field(default_factory=dict, description="Values that differ from the recipe's defaults")
    dataset: DatasetRef | None = Field(None, description="null: that of the run before it")
    with_output: bool = Field(True, description="The run begins with the model that the run before it leaves behind")
    judges: dict[str, str] = Field(
        default_factory=dict,
        max_length=20,
        description="Places in the config that name a judge, such as `rewards.0.judge`, and the output of the run before it "
        "that is asked there, such as `judge`",
    )
    behind: Id | None = Field(None, description="A step that is not launched yet; null: the run itself")
    also: list[Id] = Field(default_factory=list, max_length=20, description="Other runs that must have finished too")
    also_steps: list[Id] = Field(
        default_factory=list,
        max_length=20,
        description="Steps that are not launched yet, whose runs must have finished too",
    )
    experiment: str = ""
    name: str = ""


class ChainStepOut(Schema):
    id: int
    kind: str
    name: str
    recipe: str
    with_output: bool | None = Field(description="null of an evaluation")
    judges: dict[str, str] = Field(
        description="Places in the config, and the output of the run before it that is asked there"
    )
    state: str = Field(description="waiting, launched, refused or cancelled")
    reason: str = Field(description="The reason why it waits, or why it was not launched")
    after: int | None = Field(description="The run that it waits for")
    behind: int | None = Field(description="The step for which it waits, until that step becomes a run")
    also: list[int] = Field(description="Other runs for which it waits")
    also_steps: list[int] = Field(description="Steps for whose runs it waits, until they are launched")
    run: int | None
    evaluation: int | None
    created_at: datetime


class ChainOut(Schema):
    first: int = Field(description="The run at the beginning of the chain")
    items: list[ChainStepOut]


class SettledStepIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"run": 7, "name": "on the new answers"}})

    run: Id = Field(description="The run whose recipe, model and config it has")
    experiment: str = Field("", description="Empty: that of the run")
    name: str = ""


class SettledStepOut(Schema):
    id: int
    name: str
    recipe: str
    like: int = Field(description="The run whose recipe, model and config it has")
    experiment: str
    state: str = Field(description="waiting, launched, refused or cancelled")
    reason: str = Field(description="The reason why it waits, or why it was not launched")
    run: int | None
    created_at: datetime


class SettledSteps(Schema):
    settled: bool = Field(
        description="Whether every task has its answers and no disagreement or single answer waits for a decision. Decisions do not "
        "count if the project publishes each answer by itself"
    )
    why_not: str
    items: list[SettledStepOut]

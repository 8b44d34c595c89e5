"""The requests that launch a run, as OpenAPI shows them."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field

from webapp.core.requests.openapi import StrictIn
from webapp.datasets.api.references import DatasetIn, DatasetRef, named
from webapp.datasets.api.versions import LeakOut, NearOut

from ..lifecycle.schemas import LimitsIn, NotBefore, Retries
from ..models import RETRIES
from ..schemas import RunOut
from .checks import DatasetChoice


def choice(ref: int | str | DatasetIn) -> DatasetChoice:
    meant = named(ref)
    return DatasetChoice(id=meant.id, name=meant.name, version=meant.version)


class _Asked(Schema):
    """All that somebody asks for with a run, besides its recipe."""

    config: dict[str, Any] = Field(default_factory=dict, description="Values that differ from the recipe's defaults")
    dataset: DatasetRef
    model: str | None = Field(None, description="Name in the model registry; replaces `config.model.name`")
    experiment: str | None = Field(None, description="Made if there is none of this name")
    name: str = ""
    not_before: NotBefore = None
    retries: Retries = RETRIES
    limits: LimitsIn = Field(LimitsIn(), description="The run starts with them")


class LaunchIn(_Asked):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"recipe": "policy", "config": {"steps": 40, "optim": {"lr": 2e-4}}, "dataset": "demo"}
        },
    )

    recipe: str
    draft: bool = Field(False, description="Keep it as a draft, whose config, dataset and model may have problems")


class RunDraftIn(_Asked):
    """All that a draft holds; what is left out takes its default."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"config": {"steps": 80}, "dataset": "demo", "name": "longer"}}
    )


class RunDraftProblem(Schema):
    path: str = Field(description="The place in the config, or `dataset`; empty: the whole")
    message: str


class RunDraftOut(Schema):
    run: RunOut
    dataset: dict[str, Any] = Field(
        description="The dataset that it names: `id` and `version`, or a `name` that no dataset has"
    )
    problems: list[RunDraftProblem] = Field(description="The reasons why it cannot be launched; empty if it can")


class ForkIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"config": {"optim": {"lr": 1e-4}}}})

    config: dict[str, Any] = Field(default_factory=dict, description="Replaces values in the config of the run")
    dataset: DatasetRef | None = None
    model: str | None = None
    experiment: str | None = None
    name: str = ""
    start_step: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        0,
        description="Continue from the checkpoint of this step; 0: start from the beginning. Data, model and adapters must be the same",
    )
    not_before: NotBefore = None
    retries: Retries | None = Field(None, description="null: the number of the run that is forked")
    limits: LimitsIn = Field(
        LimitsIn(), description="Limits of the new run; the limits of the run that is forked do not hold for it"
    )


class ConfigCheckIn(StrictIn):
    """With a `dataset`, everything is checked that a launch checks, and what would leak from training into the held-out results is looked
    for."""

    config: dict[str, Any] = Field(default_factory=dict)
    dataset: DatasetRef | None = None
    model: str | None = Field(None, description="A model that replaces `config.model.name`, as for a launch")


class ExpectedTimeOut(Schema):
    """The time that all steps and evaluations would take here, by the nearest earlier run."""

    seconds: float | None = Field(description="null: not known")
    run: int | None = Field(description="The earlier run")
    why: str = Field(description="The difference of that run, or the reason why nothing is known")


class ExpectedUseOut(Schema):
    """The tokens and the money that all judges together would use, by the newest runs of the recipe that asked them."""

    tokens: float | None = Field(description="null: not known")
    money: float | None = Field(description="null: not known, for example because the endpoint has no prices")
    why: str = Field(description="Calls and the parts that are left out, or the reason why nothing is known")


class ConfigCheckOut(Schema):
    """`leaks`: held-out prompts of the dataset that are trained on, in it or by what the models of the config were trained on;
    `near`: those that are nearly the same. null without a dataset."""

    config: dict[str, Any] = Field(description="Complete: every default filled in")
    leaks: list[LeakOut] | None
    near: list[NearOut] | None
    time: ExpectedTimeOut | None = Field(description="null without a dataset")
    judges: ExpectedUseOut | None = Field(description="null without a dataset, or if the config asks no judge")
    warnings: list[str] = Field(description="Why a run that is not refused may still fail; empty without a dataset")


class LaunchedOut(RunOut):
    warnings: list[str] = Field(description="Why the run may fail, for example for lack of memory")


class ExperimentIn(StrictIn):
    name: str
    description: str = ""

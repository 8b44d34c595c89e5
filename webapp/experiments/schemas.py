"""The bodies of the experiments API, as OpenAPI shows them."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field

from .models import Run

Id = Annotated[int, Field(ge=1, lt=2**63)]
RunStateName = Annotated[str, Field(json_schema_extra={"enum": Run.State.values})]


class Named(Schema):
    id: int
    name: str


class RunDatasetOut(Named):
    version_id: int
    version: int


class RunProgressOut(Schema):
    step: int
    steps_total: int
    fraction: float
    phase: str
    phase_done: int
    phase_total: int
    eta_s: float | None
    learner_device: str = Field(
        description="The device that computes the gradients; empty until the process has said so"
    )
    sampler_device: str = Field(description="The device that samples the responses; empty if nothing is sampled")


class RunOutputOut(Named):
    role: str = Field(description="policy, reward_model, judge or rubric_writer")
    format: str = Field(description="hf (a whole model) or peft (an adapter)")
    step: int


class RunResultOut(Schema):
    metric: str
    title: str
    better: str = Field(description="`higher`, `lower`, or empty if neither side is better")
    share: bool = Field(description="Shown as per cent")
    first: float | None
    last: float | None
    low: float | None = Field(description="95% interval of `last`; null if there is none")
    high: float | None
    n: int | None = Field(description="Number of cases from which `last` is computed, if the run reports them")


class EarlyStopOut(Schema):
    metric: str
    patience: int = Field(description="So many values in a row that are not better")
    better: str | None = Field(description="null: as the recipe declares the metric")
    min_delta: float


class RunOut(Schema):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 7,
                "name": "run 3",
                "number": 3,
                "experiment": {"id": 1, "name": "Policy from rubrics"},
                "recipe": "policy",
                "state": "running",
                "state_reason": "",
                "progress": {
                    "step": 12,
                    "steps_total": 40,
                    "fraction": 0.3,
                    "phase": "rollouts",
                    "phase_done": 24,
                    "phase_total": 32,
                    "eta_s": 310.0,
                    "learner_device": "NVIDIA H100 80GB HBM3",
                    "sampler_device": "NVIDIA H100 80GB HBM3",
                },
                "config": {"steps": 40},
                "summary": {"reward/mean": 0.41, "eval/rubric_score:first": 0.22, "eval/rubric_score": 0.37},
                "result": {
                    "metric": "eval/rubric_score",
                    "title": "Held-out rubric score",
                    "better": "higher",
                    "share": False,
                    "first": 0.22,
                    "last": 0.37,
                    "low": 0.29,
                    "high": 0.45,
                    "n": None,
                },
                "dataset": {"id": 1, "name": "demo", "version_id": 1, "version": 1},
                "model": {"id": 1, "name": "smollm2-135m-instruct"},
                "attempt": 1,
                "under_way_s": 118.2,
                "time_limit_s": None,
                "token_limit": None,
                "judge_token_limit": None,
                "judge_money_limit": None,
                "stop_early": {"metric": "eval/rubric_score", "patience": 5, "better": None, "min_delta": 0.001},
                "not_before": None,
                "retries": 2,
                "last_seq": 118,
                "forked_from": None,
                "start_step": 0,
                "created_at": "2026-11-21T04:30:00Z",
                "started_at": "2026-11-21T04:30:09Z",
                "first_metric_at": "2026-11-21T04:30:41Z",
                "ended_at": None,
                "outputs": [],
            }
        }
    )

    id: int
    name: str
    number: int
    experiment: Named
    recipe: str
    state: RunStateName
    state_reason: str
    progress: RunProgressOut
    config: dict[str, Any]
    summary: dict[str, float]
    result: RunResultOut | None = Field(description="The recipe's headline metric before and after training")
    dataset: RunDatasetOut | None = Field(description="Null of a run that was logged from outside")
    model: Named | None = Field(description="Null of a run that was logged from outside")
    attempt: int
    under_way_s: float | None = Field(
        description="The time that all its attempts have run together; null for a run that was logged from outside"
    )
    time_limit_s: float | None = Field(
        description="The limit of `under_way_s`, at which it stops and saves; null: no limit"
    )
    token_limit: int | None = Field(
        description="Tokens that it may generate, all attempts together; then it stops and saves. null: no limit"
    )
    judge_token_limit: int | None = Field(
        description="All its judges together; then it stops and saves. null: no limit"
    )
    judge_money_limit: float | None = Field(description="The same, in the unit of their endpoints' prices")
    stop_early: EarlyStopOut | None = Field(
        description="The rule by which it stops because a metric no longer improves; null: none"
    )
    not_before: datetime | None = Field(
        description="It takes no place in the line before this time. null: any time will do"
    )
    retries: int = Field(description="How often in a row it continues by itself if its process is lost")
    last_seq: int
    forked_from: int | None
    start_step: int = Field(
        description="Step of the checkpoint that it continued from; 0: it started from the beginning"
    )
    created_at: datetime
    started_at: datetime | None
    first_metric_at: datetime | None
    ended_at: datetime | None
    outputs: list[RunOutputOut] = Field(description="The registered models that the run has produced")


class ExperimentOut(Named):
    description: str
    runs: int
    created_at: datetime

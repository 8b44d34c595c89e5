"""The bodies of the experiments API, as OpenAPI shows them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from webapp.datasets.api.versions import LeakOut, NearOut

from .checks import DatasetChoice
from .models import Run
from .rollouts import Filters, Measure, Verdict

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
    learner_device: str = Field(description="What computes the gradients; empty until the process has said so")
    sampler_device: str = Field(description="What samples the responses; empty where nothing is sampled")


class RunOutputOut(Named):
    role: str = Field(description="policy, reward_model, judge or rubric_writer")
    format: str = Field(description="hf (a whole model) or peft (an adapter)")
    step: int


class RunResultOut(Schema):
    metric: str
    title: str
    better: str = Field(description="`higher`, `lower`, or empty where neither side is better")
    share: bool = Field(description="Shown as per cent")
    first: float | None
    last: float | None
    low: float | None = Field(description="95% interval of `last`; null where none is told")
    high: float | None
    n: int | None = Field(description="How many cases `last` rests on, where it is told")


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
    dataset: RunDatasetOut
    model: Named
    attempt: int
    last_seq: int
    forked_from: int | None
    start_step: int = Field(description="Of the checkpoint that it went on from; 0: it began anew")
    created_at: datetime
    started_at: datetime | None
    first_metric_at: datetime | None
    ended_at: datetime | None
    outputs: list[RunOutputOut] = Field(description="The models of the registry that the run has left behind")


class RunList(Schema):
    items: list[RunOut]
    next: str | None


class RunDatasetIn(Schema):
    """One version of a dataset; without `version` the newest."""

    id: Id
    version: Id | None = None


DatasetRef = Annotated[
    Id | str | RunDatasetIn, Field(description="A dataset by id or name, or one of its versions", examples=["demo"])
]


def choice(ref: int | str | RunDatasetIn) -> DatasetChoice:
    if isinstance(ref, RunDatasetIn):
        return DatasetChoice(id=ref.id, version=ref.version)
    return DatasetChoice(id=ref) if isinstance(ref, int) else DatasetChoice(name=ref)


class LaunchIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"recipe": "policy", "config": {"steps": 40, "optim": {"lr": 2e-4}}, "dataset": "demo"}
        },
    )

    recipe: str
    config: dict[str, Any] = Field(default_factory=dict, description="What differs from the recipe's defaults")
    dataset: DatasetRef
    model: str | None = Field(None, description="Name in the model registry; replaces `config.model.name`")
    experiment: str | None = Field(None, description="Made if there is none of this name")
    name: str = ""


class ForkIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"config": {"optim": {"lr": 1e-4}}}})

    config: dict[str, Any] = Field(default_factory=dict, description="Laid over the config of the run")
    dataset: DatasetRef | None = None
    model: str | None = None
    experiment: str | None = None
    name: str = ""
    start_step: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        0,
        description="Go on from the checkpoint of this step; 0 begins anew. Data, model and adapters must be the same",
    )


class ExtendIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"steps": 80}})

    steps: Annotated[int, Field(ge=1, lt=2**31, description="Of the whole run, more than it has")]


class RolloutDatasetIn(Schema):
    """Which of the sampled responses, and where they go: a dataset that is there gets a version."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "best of 8", "best": 1, "least": 0.5, "first": 20}}
    )

    name: Annotated[str, Field(min_length=1, max_length=120)]
    phase: Literal["train", "eval"] = "train"
    first: Annotated[int, Field(ge=0, lt=2**31, description="The first step")] = 0
    last: Annotated[int | None, Field(ge=0, lt=2**31, description="The last step; null: the newest")] = None
    best: Annotated[int, Field(ge=0, lt=2**31, description="So many of each prompt, those worth most; 0: all")] = 0
    least: Annotated[float | None, Field(description="What is worth less is left out")] = None
    whole: Annotated[bool, Field(description="Responses that were cut are left out")] = False


class RolloutDatasetOut(Schema):
    """Follow the import at `GET imports/{import_id}`; its `version` is what was made."""

    import_id: int
    dataset: str


class BudgetIn(Schema):
    """For the whole run. What is left out stays as it is; null lifts the limit."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"budget_tokens": 2_000_000}})

    budget_tokens: Annotated[int | None, Field(ge=1, lt=2**53)] = None
    budget_money: Annotated[float | None, Field(gt=0, lt=10_000_000, allow_inf_nan=False)] = None


class RenameIn(Schema):
    name: str


class MetricHistogramOut(Schema):
    edges: list[float]
    counts: list[int]


class MetricPointOut(Schema):
    step: int
    value: float | None
    time: datetime
    histogram: MetricHistogramOut | None


class MetricsOut(Schema):
    key: str
    points: list[MetricPointOut]
    next: int | None = Field(description="The `after_step` that continues, or null")


class CurveOut(Schema):
    steps: list[int]
    values: list[float]
    times: list[float] = Field(description="Seconds since 1970, one per step")


class CurvesOut(Schema):
    curves: dict[str, CurveOut]
    keys: list[str]
    histograms: list[str]
    last_seq: int


class HistogramStepOut(MetricHistogramOut):
    step: int


class MetricHistogramsOut(Schema):
    key: str
    steps: list[HistogramStepOut]


class RolloutFilters(Schema):
    step: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    phase: Literal["train", "eval"] | None = None
    criterion: str | None = Field(None, description="Id or whole text of a criterion that was scored")
    verdict: Verdict | None = Field(None, description="How it was judged; without `criterion`, of any criterion")
    excluded: bool | None = Field(None, description="Whether the response was left out of training")
    part: str = Field("", max_length=200, description="A part of the reward; `low`, `high` and `lacking` are about it")
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None
    lacking: bool = Field(False, description="Only responses that the part could not value")
    by: str = Field("", max_length=200, description="The part that `sort=part` sorts by; empty: `part`")
    between: str = Field(
        "", max_length=400, pattern=r"^$|^[^,]+,[^,]+$", description="Two parts, with a comma between, that disagree"
    )
    apart: float = Field(0.0, ge=0, allow_inf_nan=False, description="By how much they disagree at least")
    measure: Measure = Field(
        "rank", description="`value`: difference of the values. `rank`: of the places in the group, from 0 to 1"
    )

    def filters(self) -> Filters:
        values = self.model_dump(exclude={"between"})
        first, _, second = self.between.partition(",")
        return Filters(**values, between=(first, second) if second else None)


class RolloutList(Schema):
    items: list[dict[str, Any]] = Field(description="`trainer.contracts.RolloutRecord` with `id` and `step`")
    next: str | None
    oldest_step: int | None = Field(None, description="Where the search stopped; null: all of the run was searched")


class FacetStep(Schema):
    step: int
    phase: str
    count: int


class FacetCriterion(Schema):
    text: str
    met: int
    unmet: int
    missing: int


class FacetPart(Schema):
    name: str
    kind: str
    weight: float | None = Field(description="In the weighted sum; null where the part is not in the config")
    shadow: bool = Field(description="Measured and shown, not trained on")
    judge: str
    low: float | None
    high: float | None
    valued: int
    missing: int


class FacetReason(Schema):
    reason: str
    count: int


class FacetsOut(Schema):
    steps: list[FacetStep]
    criteria: list[FacetCriterion]
    parts: list[FacetPart]
    expression: str = Field(description="What the parts are put together by; empty: their weighted sum")
    excluded: list[FacetReason] = Field(description="Why responses were left out, most frequent first")


class LogLineOut(Schema):
    seq: int
    time: datetime
    step: int
    level: str
    message: str


class LogOut(Schema):
    lines: list[LogLineOut]


class ArtifactOut(Schema):
    id: int
    step: int
    role: str
    path: str
    bytes: int
    digest: str
    created_at: datetime
    present: bool = Field(description="False where the files are gone")
    model: Named | None = Field(description="The model of the registry that these files are")
    download: str | None = Field(description="Where the files come from; null where they are gone")


class ArtifactList(Schema):
    items: list[ArtifactOut]
    next: str | None


class DifferenceOut(Schema):
    path: str
    values: list[Any]


class CompareOut(Schema):
    runs: list[RunOut]
    config: list[DifferenceOut]
    curves: dict[str, dict[str, CurveOut]]
    keys: list[str]
    unlike: dict[str, str] = Field(
        description="Run id -> why its result does not compare with that of most: another measure, other data or settings"
    )


class RecipeNeedOut(Schema):
    count: str = Field(description="A key of a dataset version's counts")
    words: str


class RecipeOut(Schema):
    name: str
    title: str
    summary: str
    paper: str
    needs: list[RecipeNeedOut]
    headline: str = Field(description="The metric that says how good the result is")


class MetricOut(Schema):
    key: str = Field(description="May end in `*`, which stands for names that the config gives")
    title: str
    label: str = Field(description="Its name where no chart stands around it")
    help: str
    group: str
    chart: str = Field(description="Title of the chart it shares; empty: one of its own")
    unit: str
    better: str
    band: str = Field(description="Key of what is drawn around it")
    band_times: float
    ends: list[str] = Field(description="Keys of an interval's lower and upper end; empty: it has none")
    count: str = Field(description="Key of how many cases its newest value rests on; empty: not told")
    share: bool
    optional: bool = Field(description="Not every run of the recipe sends it")
    held_out: bool = Field(description="Measured by evaluations only")
    over: str = Field(description="Of a histogram: key of the one that it is a part of, bin by bin")


class MetricGroupOut(Schema):
    id: str
    title: str
    lede: str
    small: bool
    order: int


class TraceOut(Schema):
    title: str
    help: str
    group: str
    x: str = Field(description="Key of the metric on the horizontal axis")
    y: str = Field(description="Key of the metric on the vertical axis")


class RecipeMetricsOut(Schema):
    headline: str
    pulse: str = Field(description="The curve that lists draw small")
    stats: list[str]
    metrics: list[MetricOut]
    histograms: list[MetricOut]
    traces: list[TraceOut] = Field(description="Pairs of metrics drawn against each other, a point for each evaluation")
    groups: list[MetricGroupOut]


class RecipeList(Schema):
    items: list[RecipeOut]
    next: str | None


class LeftOutOut(Schema):
    count: int
    words: str


class FitNeedOut(RecipeNeedOut):
    train: int
    heldout: int
    left_out: list[LeftOutOut]


class FitOut(Schema):
    recipe: str
    fits: bool | None
    needs: list[FitNeedOut]
    step_s: float | None = Field(description="Median seconds of a step in the last runs here")


class FitList(Schema):
    items: list[FitOut]
    next: str | None


class ConfigCheckIn(Schema):
    """With a `dataset`, what would leak from training into the held-out results is looked for."""

    config: dict[str, Any] = Field(default_factory=dict)
    dataset: DatasetRef | None = None


class ConfigCheckOut(Schema):
    """`leaks`: held-out prompts of the dataset that are trained on, in it or by what the models of the config were trained on;
    `near`: those that are nearly the same. null without a dataset."""

    config: dict[str, Any] = Field(description="Complete: every default filled in")
    leaks: list[LeakOut] | None
    near: list[NearOut] | None


class ExperimentIn(Schema):
    name: str
    description: str = ""


class ExperimentOut(Named):
    description: str
    runs: int
    created_at: datetime


class ExperimentList(Schema):
    items: list[ExperimentOut]
    next: str | None

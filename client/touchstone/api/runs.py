"""The group `runs` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, new_key
from .shared import (
    DatasetIn,
    EarlyStopIn,
    LicenceOut,
    LimitsIn,
    Named,
    RenameIn,
    RepeatOut,
    RunDatasetOut,
    RunProgressOut,
    RunResultOut,
    WeightsJobOut,
)


class AlarmAskedOut(TypedDict):
    sent: int


class AlarmList(TypedDict):
    items: list[AlarmOut]
    next: str | None


class AlarmOut(TypedDict):
    """More responses than usual show behaviour that games the reward, or several steps taught nothing (`flat`)
    or badly (`entropy`, `dead`, `mismatch`). An alarm asks people to look, and proves nothing.
    """

    id: int
    signal: str
    subject: str
    role: str
    step: int
    since: int
    share: float
    before: float
    value: float | None
    usual: float | None
    paid: float | None
    part: str
    criterion: str
    time: str
    title: str
    told: str
    help: str
    responses: list[AlarmResponseOut]
    asked: int
    left_out: int
    why: str


class AlarmResponseOut(TypedDict):
    group: int
    index: int
    response: str
    reward: float | None


class ArtifactOut(TypedDict):
    id: int
    step: int
    role: str
    path: str
    bytes: int
    digest: str
    created_at: str
    present: bool
    model: Named | None
    download: str | None


class BudgetIn(TypedDict):
    """The budget for the whole run. A limit that is left out stays as it is; null lifts it."""

    budget_tokens: NotRequired[int | None]
    budget_money: NotRequired[float | None]


class ChainOut(TypedDict):
    first: int
    items: list[ChainStepOut]


class ChainStepIn(TypedDict):
    kind: Literal["run", "evaluation"]
    recipe: NotRequired[str]
    config: NotRequired[dict[str, Any]]
    dataset: NotRequired[int | str | DatasetIn | None]
    with_output: NotRequired[bool]
    judges: NotRequired[dict[str, str]]
    behind: NotRequired[int | None]
    also: NotRequired[list[int]]
    also_steps: NotRequired[list[int]]
    experiment: NotRequired[str]
    name: NotRequired[str]


class ChainStepOut(TypedDict):
    id: int
    kind: str
    name: str
    recipe: str
    with_output: bool | None
    judges: dict[str, str]
    state: str
    reason: str
    after: int | None
    behind: int | None
    also: list[int]
    also_steps: list[int]
    run: int | None
    evaluation: int | None
    created_at: str


class CompareOut(TypedDict):
    runs: list[RunOut]
    config: list[DifferenceOut]
    curves: dict[str, dict[str, CurveOut]]
    keys: list[str]
    unlike: dict[str, str]


class ComputedLineOut(TypedDict):
    expression: str
    keys: list[str]
    program: list[list[str | float | int | None]]
    totals: dict[str, float]
    last_step: int | None
    missing: list[str]
    steps: list[int]
    values: list[float | None]
    times: list[float]


class ComputedOut(TypedDict):
    lines: list[ComputedLineOut]
    last_seq: int


class CurveOut(TypedDict):
    steps: list[int]
    values: list[float]
    times: list[float]


class CurvesOut(TypedDict):
    curves: dict[str, CurveOut]
    more: list[str]
    keys: list[str]
    histograms: list[str]
    last_seq: int


class CustomChartIn(TypedDict):
    title: NotRequired[str]
    expressions: list[str]
    lowest: NotRequired[float | None]
    highest: NotRequired[float | None]


class CustomChartList(TypedDict):
    items: list[CustomChartOut]
    pinned: list[str]
    next: str | None


class CustomChartOut(TypedDict):
    id: int
    title: str
    expressions: list[str]
    lowest: float | None
    highest: float | None


class DifferenceOut(TypedDict):
    path: str
    values: list[Any]


class EarlyStopOut(TypedDict):
    metric: str
    patience: int
    better: str | None
    min_delta: float


class EventOut(TypedDict):
    at: str
    action: str
    what: str
    state: str
    attempt: int | None
    who: str
    erased: bool
    why: str
    lasted_s: float | None


class ExtendIn(TypedDict):
    steps: int


class ForkIn(TypedDict):
    config: NotRequired[dict[str, Any]]
    dataset: NotRequired[int | str | DatasetIn | None]
    model: NotRequired[str | None]
    experiment: NotRequired[str | None]
    name: NotRequired[str]
    start_step: NotRequired[int]
    not_before: NotRequired[str | None]
    retries: NotRequired[int | None]
    limits: NotRequired[LimitsIn]


class GradedCriterionOut(TypedDict):
    id: str
    text: str
    judge: bool
    people: bool | None
    met: int
    not_met: int
    agree: bool | None


class GradedOut(TypedDict):
    """A response that was drawn, by its place in the run."""

    id: int
    step: int
    phase: str
    group: int
    index: int
    state: Literal["waiting", "asked", "left_out"]
    problem: str
    task: int | None
    example: str
    response: str
    criteria: list[GradedCriterionOut]


class HistogramStepOut(TypedDict):
    edges: list[float]
    counts: list[int]
    step: int


class KeepCheckpoints(TypedDict):
    keep: bool


class LaunchIn(TypedDict):
    config: NotRequired[dict[str, Any]]
    dataset: int | str | DatasetIn
    model: NotRequired[str | None]
    experiment: NotRequired[str | None]
    name: NotRequired[str]
    not_before: NotRequired[str | None]
    retries: NotRequired[int]
    limits: NotRequired[LimitsIn]
    recipe: str
    draft: NotRequired[bool]


class LaunchedOut(TypedDict):
    id: int
    name: str
    number: int
    experiment: Named
    recipe: str
    state: Literal[
        "draft",
        "queued",
        "starting",
        "running",
        "blocked",
        "pausing",
        "paused",
        "stopping",
        "stopped",
        "finished",
        "failed",
    ]
    state_reason: str
    progress: RunProgressOut
    config: dict[str, Any]
    summary: dict[str, float]
    result: RunResultOut | None
    dataset: RunDatasetOut | None
    model: Named | None
    attempt: int
    under_way_s: float | None
    time_limit_s: float | None
    token_limit: int | None
    judge_token_limit: int | None
    judge_money_limit: float | None
    stop_early: EarlyStopOut | None
    not_before: str | None
    retries: int
    last_seq: int
    forked_from: int | None
    start_step: int
    created_at: str
    started_at: str | None
    first_metric_at: str | None
    ended_at: str | None
    outputs: list[RunOutputOut]
    warnings: list[str]


class LineOut(TypedDict):
    places: int | None
    gpus: int
    gpus_free: int
    cpus: float
    cpus_free: float
    memory_gb: float
    memory_gb_free: float
    running: list[LineRunOut]
    waiting: list[LineRunOut]
    more: int


class LineRunOut(TypedDict):
    """A run, or a job that needs weights, such as one of an evaluation or a judge. For another workspace only
    its kind is given.
    """

    kind: Literal["run", "job"]
    id: int | None
    job: int | None
    evaluations: list[int]
    name: str | None
    experiment: str | None
    state: str
    priority: str | None
    gpus: float
    cpus: float
    memory_gb: float
    memory_expected: bool
    since: str
    seconds: float | None
    why: str


class LogLineOut(TypedDict):
    seq: int
    time: str
    step: int
    level: str
    message: str


class LogOut(TypedDict):
    lines: list[LogLineOut]


class MatchShareOut(TypedDict):
    """A share with its 95% interval, which resamples judgements."""

    value: float | None
    n: int
    low: float | None
    high: float | None
    missing: int
    undefined: str
    interval: str


class MatcherAgreementOut(TypedDict):
    matcher: str
    judgements: int
    agree: MatchShareOut
    recall: MatchShareOut
    precision: MatchShareOut


class MetricHistogramOut(TypedDict):
    edges: list[float]
    counts: list[int]


class MetricHistogramsOut(TypedDict):
    key: str
    steps: list[HistogramStepOut]


class MetricPointOut(TypedDict):
    step: int
    value: float | None
    not_finite: str
    time: str
    histogram: MetricHistogramOut | None


class MetricsOut(TypedDict):
    key: str
    points: list[MetricPointOut]
    next: int | None


class PeopleOut(TypedDict):
    """`decided` criteria of `responses` are those on which more people say one thing than the other; on
    `agreeing` of them that is what the judge says.
    """

    share: float
    drawn: int
    waiting: int
    left_out: int
    responses: int
    decided: int
    agreeing: int
    undecided: int
    value: float | None
    low: float | None
    high: float | None
    project: Named | None


class PinIn(TypedDict):
    chart: str
    pinned: bool


class PinsOut(TypedDict):
    charts: list[str]


class PlaceIn(TypedDict):
    place: int


class PriorityIn(TypedDict):
    priority: Literal["low", "normal", "high"]


class ReadExpression(TypedDict):
    expression: str
    keys: list[str]


class ReadExpressions(TypedDict):
    items: list[ReadExpression]
    next: str | None


class ReasonsMatchedIn(TypedDict):
    judgement: str
    matches: list[list[Any]]


class ReasonsOut(TypedDict):
    items: list[MatcherAgreementOut]
    waiting: UnmatchedOut | None


class RepeatIn(TypedDict):
    """Either `every_hours`, or `at` and perhaps `weekday`."""

    every_hours: NotRequired[int | None]
    at: NotRequired[str | None]
    weekday: NotRequired[int | None]
    zone: NotRequired[str]
    ends_at: NotRequired[str | None]
    newest_data: NotRequired[bool]


class RunDraftIn(TypedDict):
    """All that a draft holds; what is left out takes its default."""

    config: NotRequired[dict[str, Any]]
    dataset: int | str | DatasetIn
    model: NotRequired[str | None]
    experiment: NotRequired[str | None]
    name: NotRequired[str]
    not_before: NotRequired[str | None]
    retries: NotRequired[int]
    limits: NotRequired[LimitsIn]


class RunDraftOut(TypedDict):
    run: RunOut
    dataset: dict[str, Any]
    problems: list[RunDraftProblem]


class RunDraftProblem(TypedDict):
    path: str
    message: str


class RunJudgeList(TypedDict):
    items: list[RunJudgeOut]
    next: str | None


class RunJudgeOut(TypedDict):
    """Money is in the unit of the endpoint's prices. A budget of null means no limit."""

    id: int
    judge: str
    judge_id: int
    version: int
    calls: int
    failed: int
    tokens: int
    money: str
    budget_tokens: int | None
    budget_money: str | None
    problem: str
    licence: LicenceOut


class RunLabelsIn(TypedDict):
    tags: NotRequired[list[str] | None]
    notes: NotRequired[str | None]
    group: NotRequired[str | None]


class RunLabelsOut(TypedDict):
    tags: list[str]
    notes: str
    group: str
    starred: bool


class RunOut(TypedDict):
    id: int
    name: str
    number: int
    experiment: Named
    recipe: str
    state: Literal[
        "draft",
        "queued",
        "starting",
        "running",
        "blocked",
        "pausing",
        "paused",
        "stopping",
        "stopped",
        "finished",
        "failed",
    ]
    state_reason: str
    progress: RunProgressOut
    config: dict[str, Any]
    summary: dict[str, float]
    result: RunResultOut | None
    dataset: RunDatasetOut | None
    model: Named | None
    attempt: int
    under_way_s: float | None
    time_limit_s: float | None
    token_limit: int | None
    judge_token_limit: int | None
    judge_money_limit: float | None
    stop_early: EarlyStopOut | None
    not_before: str | None
    retries: int
    last_seq: int
    forked_from: int | None
    start_step: int
    created_at: str
    started_at: str | None
    first_metric_at: str | None
    ended_at: str | None
    outputs: list[RunOutputOut]


class RunOutputOut(TypedDict):
    id: int
    name: str
    role: str
    format: str
    step: int


class ScheduleIn(TypedDict):
    not_before: str | None


class StarIn(TypedDict):
    starred: bool


class StepSpanOut(TypedDict):
    work: str
    name: str
    inside: int | None
    start: float
    seconds: float
    pieces: int


class StepSpansOut(TypedDict):
    step: int | None
    seconds: float | None
    spans: list[StepSpanOut]
    beside: list[StepSpanOut]
    first: int | None
    last: int | None


class StopEarlyIn(TypedDict):
    stop_early: EarlyStopIn | None


class TimeLimitIn(TypedDict):
    seconds: int | None


class TokenLimitIn(TypedDict):
    tokens: int | None


class TokensOut(TypedDict):
    token_limit: int | None
    generated_tokens: int | None


class UnmatchedOut(TypedDict):
    judgement: str
    question: str
    human: list[str]
    model: list[str]


class Runs(Group):
    def star(self, run_id: int, body: StarIn) -> RunLabelsOut:
        """Star a run for yourself."""
        return self._json(RunLabelsOut, "PUT", f"/runs/{run_id}/star", body=body)

    def labels(self, run_id: int) -> RunLabelsOut:
        """Labels, columns and notes of people on a run."""
        return self._json(RunLabelsOut, "GET", f"/runs/{run_id}/labels")

    def write_labels(self, run_id: int, body: RunLabelsIn) -> RunLabelsOut:
        """Change tags, notes and group of a run. Absent labels stay as they are."""
        return self._json(RunLabelsOut, "PATCH", f"/runs/{run_id}/labels", body=body)

    def all(
        self,
        *,
        page_size: int | None = None,
        experiment: int | None = None,
        state: Literal["active"]
        | Literal[
            "draft",
            "queued",
            "starting",
            "running",
            "blocked",
            "pausing",
            "paused",
            "stopping",
            "stopped",
            "finished",
            "failed",
        ]
        | None = None,
        recipe: Literal[
            "policy",
            "sft",
            "reward_model",
            "dpo",
            "iterative_dpo",
            "judge",
            "rubric_writer",
            "alternating",
            "distill",
            "chain",
            "logged",
        ]
        | None = None,
    ) -> Iterator[RunOut]:
        """Runs, newest first."""
        return self._pages(
            RunOut, "/runs", query={"limit": page_size, "experiment": experiment, "state": state, "recipe": recipe}
        )

    def launch(self, body: LaunchIn, *, key: str | None = None) -> LaunchedOut:
        """Launch a run. 422 with every field that is wrong, before anything is queued. `draft`: it is kept in
        the state `draft`, to be changed and launched later.
        """
        return self._json(LaunchedOut, "POST", "/runs", body=body, key=key or new_key())

    def compare(
        self, *, ids: str, keys: str | None = None, key: list[str] | None = None, max_points: int | None = None
    ) -> CompareOut:
        """The differences of runs: configs and curves. `ids`: up to 8 runs, separated by commas; `keys` and
        `key`: metric keys, by default what their recipes show on top.
        """
        return self._json(
            CompareOut, "GET", "/runs/compare", query={"ids": ids, "keys": keys, "key": key, "max_points": max_points}
        )

    def line(self) -> LineOut:
        """The runs and jobs under way and waiting, in which order and until about when. Runs of other workspaces
        appear without details. Times are null if nobody knows them.
        """
        return self._json(LineOut, "GET", "/runs/line")

    def get(self, run_id: int) -> RunOut:
        """One run."""
        return self._json(RunOut, "GET", f"/runs/{run_id}")

    def rename(self, run_id: int, body: RenameIn) -> RunOut:
        """Rename a run."""
        return self._json(RunOut, "PATCH", f"/runs/{run_id}", body=body)

    def delete(self, run_id: int) -> None:
        """Delete a run that is over, or a draft. A draft can be restored for a day. If somebody has deleted the
        run before, the 404 says who, and when.
        """
        self._nothing("DELETE", f"/runs/{run_id}")

    def log(self, run_id: int, *, after_seq: int | None = None, before_seq: int | None = None) -> LogOut:
        """The log's newest lines, or those after one. `before_seq`: the lines just before that one, to read
        backwards.
        """
        return self._json(
            LogOut, "GET", f"/runs/{run_id}/log", query={"after_seq": after_seq, "before_seq": before_seq}
        )

    def history(self, run_id: int, *, page_size: int | None = None) -> Iterator[EventOut]:
        """Every change of a run's state: when, who and why. The entries come from the audit log, newest first."""
        return self._pages(EventOut, f"/runs/{run_id}/history", query={"limit": page_size})

    def feed(self, run_id: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Events of a run, as they happen. Server-sent events with the messages of the websocket: `now` first,
        then `run`, `metrics`, `rollouts`, `log`, `judges`, or `resync` if you were too slow to get
        everything. The stream ends when the run is over, and after an hour. For tokens: a page has the
        websocket.
        """
        return self._events("GET", f"/runs/{run_id}/feed")

    def metrics(self, run_id: int, *, key: str, after_step: int | None = None, limit: int | None = None) -> MetricsOut:
        """Every point of one metric."""
        return self._json(
            MetricsOut, "GET", f"/runs/{run_id}/metrics", query={"key": key, "after_step": after_step, "limit": limit}
        )

    def curves(
        self, run_id: int, *, keys: str | None = None, key: list[str] | None = None, max_points: int | None = None
    ) -> CurvesOut:
        """Curves of metrics, thinned so that every spike stays. The curves of the keys that `keys` and `key`
        name, or of all keys if both are left out.
        """
        return self._json(
            CurvesOut, "GET", f"/runs/{run_id}/curves", query={"keys": keys, "key": key, "max_points": max_points}
        )

    def histograms(self, run_id: int, *, key: str) -> MetricHistogramsOut:
        """One metric's histograms over the steps."""
        return self._json(MetricHistogramsOut, "GET", f"/runs/{run_id}/histograms", query={"key": key})

    def step_spans(self, run_id: int, *, step: int | None = None) -> StepSpansOut:
        """The time of one step by kinds of work. A run keeps the spans of its newest 1,000 steps. The newest
        step is taken if `step` is left out.
        """
        return self._json(StepSpansOut, "GET", f"/runs/{run_id}/spans", query={"step": step})

    def list_charts(self, run_id: int) -> CustomChartList:
        """Charts that people made for runs like it. The charts of the run's recipe in the workspace, in their
        order.
        """
        return self._json(CustomChartList, "GET", f"/runs/{run_id}/charts")

    def make_chart(self, run_id: int, body: CustomChartIn) -> CustomChartOut:
        """Create a chart of expressions. The chart is for all runs of its recipe, and for everybody in the
        workspace. 422 has the place of the error in `place`.
        """
        return self._json(CustomChartOut, "POST", f"/runs/{run_id}/charts", body=body)

    def change_chart(self, run_id: int, chart_id: int, body: CustomChartIn) -> CustomChartOut:
        """Change a chart of expressions."""
        return self._json(CustomChartOut, "PUT", f"/runs/{run_id}/charts/{chart_id}", body=body)

    def remove_chart(self, run_id: int, chart_id: int) -> None:
        """Remove a chart of expressions. A removed chart can be restored for a day."""
        self._nothing("DELETE", f"/runs/{run_id}/charts/{chart_id}")

    def move_chart(self, run_id: int, chart_id: int, body: PlaceIn) -> None:
        """Move a chart among the others."""
        self._nothing("PUT", f"/runs/{run_id}/charts/{chart_id}/place", body=body)

    def restore_chart(self, run_id: int, chart_id: int) -> CustomChartOut:
        """Restore a removed chart."""
        return self._json(CustomChartOut, "POST", f"/runs/{run_id}/charts/{chart_id}/restore")

    def pin_chart(self, run_id: int, body: PinIn) -> PinsOut:
        """Pin a chart for yourself. You see it first on the pages of all runs of this recipe."""
        return self._json(PinsOut, "PUT", f"/runs/{run_id}/pinned-charts", body=body)

    def check_expressions(self, run_id: int, *, expression: list[str]) -> ReadExpressions:
        """Check whether expressions can be read. Nothing is computed. 422 has the place of the error in `place`."""
        return self._json(ReadExpressions, "GET", f"/runs/{run_id}/computed/check", query={"expression": expression})

    def computed(self, run_id: int, *, expression: list[str], max_points: int | None = None) -> ComputedOut:
        """Curves of expressions over metrics. Such as `reward/mean - 0.1 * policy/kl`. Every stored point is
        read, and the result is thinned. 422 has the place of the error in `place`.
        """
        return self._json(
            ComputedOut, "GET", f"/runs/{run_id}/computed", query={"expression": expression, "max_points": max_points}
        )

    def stop(self, run_id: int, *, now: bool | None = None) -> RunOut:
        """Save and stop a run. The run gives up its present step within one micro-batch, and saves the steps
        that are done. Stopping a run that is over changes nothing. `now`: the run ends without saving, so the
        steps since its last checkpoint are lost; also if it is stopping already.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/stop", query={"now": now}, again=True)

    def pause(self, run_id: int) -> RunOut:
        """Save and pause a run. As with a stop, the run gives up its present step and saves. It gives its place
        to others until it is resumed; it is not over. Pausing twice changes nothing. 409 if it is over or
        stopping.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/pause", again=True)

    def resume(self, run_id: int) -> RunOut:
        """Resume a run from its last checkpoint, or begin it again. A run without a checkpoint begins again at
        its first step. 409 unless the run is paused, stopped or failed.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/resume")

    def extend(self, run_id: int, body: ExtendIn) -> RunOut:
        """Extend a run to more steps. The run must be finished or stopped; it continues from its last
        checkpoint. 409 if its model is in use, or no checkpoint is kept.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/extend", body=body)

    def priority(self, run_id: int, body: PriorityIn) -> RunOut:
        """Change the priority of a run. The priority orders the runs of the workspace, now and every time the
        run waits again. Runs that are running already are not interrupted.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/priority", body=body, again=True)

    def limit(self, run_id: int, body: TimeLimitIn) -> RunOut:
        """Limit the time of a run. The limit is for all attempts together, without the time in the line. At the
        limit the run saves and stops, and is resumed only with a new limit (409, `time_limit`). 422 if that
        much is used already.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/limit", body=body, again=True)

    def limit_tokens(self, run_id: int, body: TokenLimitIn) -> RunOut:
        """Limit the tokens that a run may generate. The limit is for all attempts together and counts every
        token that the run's own model writes, also in evaluations. At the limit the run stops with a
        checkpoint, and is resumed only with a new limit (409, `token_limit`). 422 if that much is used
        already; 409 (`no_tokens`) for a recipe that samples no responses.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/tokens", body=body, again=True)

    def tokens(self, run_id: int) -> TokensOut:
        """The tokens that a run has generated, and their limit. Steps that have ended count, in all attempts; a
        step that was repeated after a resume counts once.
        """
        return self._json(TokensOut, "GET", f"/runs/{run_id}/tokens")

    def stop_early(self, run_id: int, body: StopEarlyIn) -> RunOut:
        """Stop a run once a metric no longer improves. The run stops with a checkpoint once the last `patience`
        values of the metric are not better, by more than `min_delta`, than the best before them. It is
        resumed only with another rule (409, `stop_early`). 422 if it would stop at once.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/early", body=body, again=True)

    def spending_limit(self, run_id: int, body: BudgetIn) -> RunOut:
        """Limit the spending of a run's judges. The limit is for all judges together. At the limit the run stops
        with a checkpoint, and is resumed only with a new limit (409, `spending_limit`). 422 if that much is
        used already. A judge may have its own budget, for which the run waits instead.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/budget", body=body, again=True)

    def start_not_before(self, run_id: int, body: ScheduleIn) -> RunOut:
        """Set the earliest start of a run. Sets when a run that waits, is paused or is over may start: until
        then it takes no place. With null it waits like any other. 422 for a time that has passed, 409 if it
        has started.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/schedule", body=body, again=True)

    def draft(self, run_id: int) -> RunDraftOut:
        """A draft and its problems. 409 if the run was launched already."""
        return self._json(RunDraftOut, "GET", f"/runs/{run_id}/draft")

    def change_draft(self, run_id: int, body: RunDraftIn) -> RunDraftOut:
        """Change a draft. Replaces all that it holds, except the recipe. 409 if the run was launched already."""
        return self._json(RunDraftOut, "PUT", f"/runs/{run_id}/draft", body=body)

    def launch_draft(self, run_id: int) -> LaunchedOut:
        """Launch a draft. 422 with every field that is wrong; it then stays a draft. A run that was launched
        already is returned as it is.
        """
        return self._json(LaunchedOut, "POST", f"/runs/{run_id}/launch", again=True)

    def restore_draft(self, run_id: int) -> RunOut:
        """Restore a deleted draft. A deleted draft can be restored for a day, with its number, tags, notes and
        history. A second restore changes nothing.
        """
        return self._json(RunOut, "POST", f"/runs/{run_id}/restore")

    def fork(self, run_id: int, body: ForkIn, *, key: str | None = None) -> LaunchedOut:
        """Run again with changes."""
        return self._json(LaunchedOut, "POST", f"/runs/{run_id}/fork", body=body, key=key or new_key())

    def chain(self, run_id: int) -> ChainOut:
        """The chain of a run: what came before it, what waits for it. Each step follows the run or step for
        which it waits.
        """
        return self._json(ChainOut, "GET", f"/runs/{run_id}/chain")

    def add_step(self, run_id: int, body: ChainStepIn, *, key: str | None = None) -> ChainStepOut:
        """Launch a run or an evaluation once a run has finished. Checked now as the launch itself would be: 422
        with every field that is wrong.
        """
        return self._json(ChainStepOut, "POST", f"/runs/{run_id}/chain", body=body, key=key or new_key())

    def cancel_step(self, run_id: int, step_id: int) -> ChainStepOut:
        """Cancel a step that waits. Cancels the step and those after it. 409 if it was launched or refused."""
        return self._json(ChainStepOut, "DELETE", f"/runs/{run_id}/chain/{step_id}")

    def add_repeat(self, run_id: int, body: RepeatIn, *, key: str | None = None) -> RepeatOut:
        """Launch a run again by the clock. Each time a new run with the same config is launched in the caller's
        name, unless the one before it is not over.
        """
        return self._json(RepeatOut, "POST", f"/runs/{run_id}/repeats", body=body, key=key or new_key())

    def judges(self, run_id: int) -> RunJudgeList:
        """Tokens and costs of a run's judges. The judges that the run has asked through this server so far."""
        return self._json(RunJudgeList, "GET", f"/runs/{run_id}/judges")

    def change_budget(self, run_id: int, judge_id: int, body: BudgetIn) -> RunJudgeOut:
        """Change a judge's budget. A run that waits because a budget is used up continues within a minute."""
        return self._json(RunJudgeOut, "PATCH", f"/runs/{run_id}/judges/{judge_id}", body=body)

    def reasons(self, run_id: int) -> ReasonsOut:
        """The agreement of a run's matcher of reasons with people. The matchers' agreement with people, and the
        judgement that waits to be matched, without the matcher's result.
        """
        return self._json(ReasonsOut, "GET", f"/runs/{run_id}/reasons")

    def match_reasons(self, run_id: int, body: ReasonsMatchedIn) -> ReasonsOut:
        """Match the reasons of a judgement. 409 if somebody has matched it meanwhile. The response has the next
        one.
        """
        return self._json(ReasonsOut, "POST", f"/runs/{run_id}/reasons", body=body)

    def people(self, run_id: int) -> PeopleOut:
        """The agreement of people with a run's judge. People's grades of the responses that `people.share` has
        drawn so far. The interval counts responses, not criteria.
        """
        return self._json(PeopleOut, "GET", f"/runs/{run_id}/people")

    def people_cases(self, run_id: int, *, page_size: int | None = None) -> Iterator[GradedOut]:
        """Verdicts of judge and people, case by case. Every response that was drawn, in the order they came,
        with the verdicts of its criteria. People are counted, not named.
        """
        return self._pages(GradedOut, f"/runs/{run_id}/people/cases", query={"limit": page_size})

    def alarms(self, run_id: int) -> AlarmList:
        """Alarms of a run: signs that its policy games its reward, or learns nothing or badly. One alarm of each
        sign, the newest step first.
        """
        return self._json(AlarmList, "GET", f"/runs/{run_id}/alarms")

    def ask_about_alarm(self, run_id: int, alarm_id: int) -> AlarmAskedOut:
        """Send the responses of an alarm to people. People grade them in the project that grades the run's
        responses, blind to the judge. A second call sends none.
        """
        return self._json(AlarmAskedOut, "POST", f"/runs/{run_id}/alarms/{alarm_id}/people")

    def list_artifacts(self, run_id: int, *, page_size: int | None = None) -> Iterator[ArtifactOut]:
        """Checkpoints and models of a run. `present` is false if the files are gone: a run keeps only its newest
        checkpoints.
        """
        return self._pages(ArtifactOut, f"/runs/{run_id}/artifacts", query={"limit": page_size})

    def download_artifact(self, run_id: int, artifact_id: int, to: Path) -> Path:
        """The files of an artifact. A folder comes as an uncompressed tar. A download that broke off continues
        with `Range` (`curl -C -`).
        """
        return self._file(to, f"/runs/{run_id}/artifacts/{artifact_id}/download")

    def export_artifact(self, run_id: int, artifact_id: int) -> WeightsJobOut:
        """Export a kept checkpoint as a registered model. A job of the cluster does it: follow it under
        `/weights-jobs`. 409 if the checkpoint is gone.
        """
        return self._json(WeightsJobOut, "POST", f"/runs/{run_id}/artifacts/{artifact_id}/export")

    def keeps_checkpoints(self, run_id: int) -> KeepCheckpoints:
        """Whether a run keeps all its checkpoints."""
        return self._json(KeepCheckpoints, "GET", f"/runs/{run_id}/keep-checkpoints")

    def keep_checkpoints(self, run_id: int, body: KeepCheckpoints) -> KeepCheckpoints:
        """Keep all checkpoints of a run. A mark that no rule overrules. The run itself still replaces older
        checkpoints by newer ones, as `checkpoint.keep` says.
        """
        return self._json(KeepCheckpoints, "PUT", f"/runs/{run_id}/keep-checkpoints", body=body)

"""The group `evaluations` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, new_key, quote_part
from .shared import DatasetIn, EvaluationDatasetOut, LeakOut, LicenceOut, NearOut, RenameIn


class BoardList(TypedDict):
    items: list[BoardOut]
    next: str | None


class BoardOut(TypedDict):
    """`protocol`: how all of them were asked; `both`, `given` or `swapped` for judges of pairs."""

    benchmark: str
    protocol: str
    recipe: str
    measure: str
    settings: dict[str, Any]
    dataset: EvaluationDatasetOut | None
    evaluations: int
    rows: list[BoardRow]


class BoardRow(TypedDict):
    """`place`: from 1; equal scores share one (`shared`). null without a number, and if the number does not
    compare: `unlike` says why.
    """

    name: str
    cell: dict[str, Any]
    evaluation: int
    judge: int | None
    judge_version: int | None
    place: int | None
    shared: bool
    unlike: str


class CaseOut(TypedDict):
    number: int
    subject: dict[str, Any]
    values: dict[str, Any]
    tags: list[str]


class CriterionAuditResults(TypedDict):
    recipe: Literal["criterion_audit"]
    headline: Measured
    coverage: list[Measured]
    judges: list[Measured]
    confusion: list[Measured]
    by_criterion: list[Measured]
    by_importance: list[Measured]
    by_kind: list[Measured]
    by_axis: list[Measured]
    by_domain: list[Measured]
    against_best: list[Measured]
    human_range: list[Measured]
    raters: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class EvaluationFull(TypedDict):
    id: int
    name: str
    recipe: str
    state: str
    problem: str
    priority: Literal["low", "normal", "high"]
    progress: dict[str, Any]
    dataset: EvaluationDatasetOut | None
    recording: RecordingRef | None
    benchmark: str
    rerun_of: int | None
    headline: dict[str, Any] | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    config: dict[str, Any]
    results: dict[str, Any] | None


class EvaluationIn(TypedDict):
    recipe: str
    config: NotRequired[dict[str, Any]]
    dataset: NotRequired[int | str | DatasetIn | None]
    recording: NotRequired[int | None]
    name: NotRequired[str]


class EvaluationLeaks(TypedDict):
    """`leaks`: evaluated prompts on which the models were trained, held out or not; `near`: those that are
    nearly the same.
    """

    leaks: list[LeakOut]
    near: list[NearOut]


class EvaluationOut(TypedDict):
    id: int
    name: str
    recipe: str
    state: str
    problem: str
    priority: Literal["low", "normal", "high"]
    progress: dict[str, Any]
    dataset: EvaluationDatasetOut | None
    recording: RecordingRef | None
    benchmark: str
    rerun_of: int | None
    headline: dict[str, Any] | None
    created_at: str
    started_at: str | None
    ended_at: str | None


class EvaluationPriorityIn(TypedDict):
    priority: Literal["low", "normal", "high"]


class EvaluationRecipeList(TypedDict):
    items: list[EvaluationRecipeOut]
    next: str | None


class EvaluationRecipeOut(TypedDict):
    name: str
    title: str
    question: str
    summary: str
    dataset: str
    recording: str


class GenerateResults(TypedDict):
    recipe: Literal["generate"]
    headline: Measured
    coverage: list[Measured]
    scores: list[Measured]
    corrected: list[Measured]
    by_split: list[Measured]
    by_domain: list[Measured]
    by_axis: list[Measured]
    by_criterion: list[Measured]
    avg_at_k: list[Measured]
    pass_at_k: list[Measured]
    best_of_n: list[Measured]
    rejection: list[Measured]
    rejection_of_n: list[Measured]
    variety: list[Measured]
    wins: list[Measured]
    changed_most: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    prompts: list[Measured]
    other: list[Measured]
    notes: list[str]


class GradeNextIn(TypedDict):
    name: NotRequired[str]
    overlap: NotRequired[int]


class GradeNextOut(TypedDict):
    """`responses` to `prompts` are to be graded for an interval of plus or minus `half_width` or, with `first`,
    for a first interval; `why` says why there is nothing to make tasks of. `project` and `dataset` are null
    until the tasks are made, `published`, a version's number, until the answers are; `corrected` is the
    newest evaluation that reads them.
    """

    half_width: float
    prompts: int
    responses: int
    first: bool
    why: str
    project: int | None
    dataset: int | None
    tasks: int
    complete: int
    published: int | None
    corrected: int | None


class GradeOrCompareResults(TypedDict):
    recipe: Literal["grade_or_compare"]
    headline: Measured
    coverage: list[Measured]
    scores: list[Measured]
    next: list[Measured]
    weights: list[Measured]
    other: list[Measured]
    notes: list[str]


class JudgeAuditResults(TypedDict):
    recipe: Literal["judge_audit"]
    headline: Measured
    coverage: list[Measured]
    judges: list[Measured]
    by_group: list[Measured]
    against_best: list[Measured]
    human_range: list[Measured]
    raters: list[Measured]
    by_length: list[Measured]
    by_format: list[Measured]
    voting: list[Measured]
    calibration: list[Measured]
    calibration_error: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class Measured(TypedDict):
    """One number. `subject`: the judge, model, condition or criterion that it is about; `group`: the part of the
    data that it is of, null for all of it; `beside`: what `subject` is compared with; `x`: the place on a
    curve. A `value` that does not exist is null, and `why` says why. `low` and `high` are the ends of the 95%
    interval, null if there is none; `interval` says how it was made, or why there is none. `n` counts the
    cases behind it, `missing` those that should be and are not. `text` stands where words were found and no
    number. `cases`: the tags of the cases behind it (`…/cases?tag=`).
    """

    subject: str | None
    group: str | None
    beside: str | None
    measure: str
    x: float | None
    unit: Literal["share", "gap", "number", "points", "money", "seconds", "count", "weight", "p"] | None
    value: float | None
    low: float | None
    high: float | None
    interval: str
    n: int | None
    missing: int | None
    why: str
    text: str | None
    cases: list[str]


class MetajudgeResults(TypedDict):
    recipe: Literal["metajudge"]
    headline: Measured
    coverage: list[Measured]
    judges: list[Measured]
    reasons_and_verdicts: list[Measured]
    second_matcher: list[Measured]
    reasons_rest_on: list[Measured]
    flaws: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class PassRateResults(TypedDict):
    recipe: Literal["pass_rate"]
    headline: Measured
    coverage: list[Measured]
    map: list[Measured]
    by_pass_rate: list[Measured]
    by_domain: list[Measured]
    avg_at_k: list[Measured]
    pass_at_k: list[Measured]
    best_of_n: list[Measured]
    rejection: list[Measured]
    rejection_of_n: list[Measured]
    prompts: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class PolicyResults(TypedDict):
    recipe: Literal["policy"]
    headline: Measured
    coverage: list[Measured]
    scores: list[Measured]
    corrected: list[Measured]
    by_split: list[Measured]
    by_domain: list[Measured]
    by_axis: list[Measured]
    by_criterion: list[Measured]
    avg_at_k: list[Measured]
    pass_at_k: list[Measured]
    best_of_n: list[Measured]
    rejection: list[Measured]
    rejection_of_n: list[Measured]
    variety: list[Measured]
    wins: list[Measured]
    changed_most: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class RecordingOut(TypedDict):
    id: int
    name: str
    kind: Literal["verdicts", "scores"]
    digest: str
    rows: int
    judges: int
    created_at: str


class RecordingRef(TypedDict):
    id: int
    name: str


class RewardBenchmarkResults(TypedDict):
    recipe: Literal["reward_benchmark"]
    headline: Measured
    coverage: list[Measured]
    rm_bench: list[Measured]
    styles: list[Measured]
    best_of_list: list[Measured]
    ties: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class RubricAuditResults(TypedDict):
    recipe: Literal["rubric_audit"]
    headline: Measured
    coverage: list[Measured]
    discrimination: list[Measured]
    wording: list[Measured]
    related: list[Measured]
    weights: list[Measured]
    coverage_of_instruction: list[Measured]
    quality: list[Measured]
    ranking: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class RubricbenchResults(TypedDict):
    recipe: Literal["rubricbench"]
    headline: Measured
    coverage: list[Measured]
    conditions: list[Measured]
    by_domain: list[Measured]
    alignment: list[Measured]
    faults: list[Measured]
    necessity: list[Measured]
    by_items: list[Measured]
    by_rubrics: list[Measured]
    by_rounds: list[Measured]
    spending: list[Measured]
    questions: list[Measured]
    other: list[Measured]
    notes: list[str]


class StudyIn(TypedDict):
    name: str
    people: NotRequired[int]
    tags: NotRequired[list[str]]


class StudyOut(TypedDict):
    project: int
    name: str
    state: str
    tasks: int
    answers: int
    dataset: int
    version: int


class StudyResults(TypedDict):
    recipe: Literal["study"]
    headline: Measured
    coverage: list[Measured]
    arms: list[Measured]
    by_domain: list[Measured]
    people: list[Measured]
    other: list[Measured]
    notes: list[str]


class TasksIn(TypedDict):
    tags: NotRequired[list[str]]
    name: str
    kind: NotRequired[str]
    overlap: NotRequired[int]


class TasksOut(TypedDict):
    project: int
    dataset: int


class Evaluations(Group):
    def judge_licence(self, judge_id: int, number: int) -> LicenceOut:
        """The agreement of a judge version with labels of people."""
        return self._json(LicenceOut, "GET", f"/judges/{judge_id}/versions/{number}/licence")

    def recordings(self, *, page_size: int | None = None) -> Iterator[RecordingOut]:
        """Recorded verdicts and scores that were uploaded."""
        return self._pages(RecordingOut, "/evaluations/recordings", query={"limit": page_size})

    def store_recording(self, file: Path) -> RecordingOut:
        """Upload recorded verdicts or scores. JSON lines {"judge", "pair", "group", "label", "given",
        "swapped"}; null is a missing verdict, `swapped` is the verdict as said. Or scores: {"model",
        "example", "response", "score"}; null is a missing score. The same file again is the same recording.
        """
        return self._sent(RecordingOut, "/evaluations/recordings", file, {})

    def recipes(self) -> EvaluationRecipeList:
        """The recipes of evaluations."""
        return self._json(EvaluationRecipeList, "GET", "/evaluations/recipes")

    def recipe_schema(self, name: str) -> dict[str, Any]:
        """JSON Schema of a recipe's config."""
        return self._json(dict[str, Any], "GET", f"/evaluations/recipes/{quote_part(name)}/schema")

    def all(
        self,
        *,
        page_size: int | None = None,
        state: Literal["queued", "running", "paused", "finished", "failed", "cancelled"] | None = None,
        recipe: Literal[
            "judge_audit",
            "reward_benchmark",
            "criterion_audit",
            "rubricbench",
            "study",
            "metajudge",
            "policy",
            "generate",
            "pass_rate",
            "rubric_audit",
            "grade_or_compare",
        ]
        | None = None,
    ) -> Iterator[EvaluationOut]:
        """Evaluations, newest first."""
        return self._pages(EvaluationOut, "/evaluations", query={"limit": page_size, "state": state, "recipe": recipe})

    def create(self, body: EvaluationIn, *, key: str | None = None) -> EvaluationFull:
        """Start an evaluation. Answers 422 with every wrong field before anything is queued."""
        return self._json(EvaluationFull, "POST", "/evaluations", body=body, key=key or new_key())

    def get(self, evaluation_id: int) -> EvaluationFull:
        """One evaluation with its results."""
        return self._json(EvaluationFull, "GET", f"/evaluations/{evaluation_id}")

    def rename(self, evaluation_id: int, body: RenameIn) -> EvaluationFull:
        """Rename an evaluation."""
        return self._json(EvaluationFull, "PATCH", f"/evaluations/{evaluation_id}", body=body)

    def delete(self, evaluation_id: int) -> None:
        """Delete an evaluation that is over."""
        self._nothing("DELETE", f"/evaluations/{evaluation_id}")

    def priority(self, evaluation_id: int, body: EvaluationPriorityIn) -> EvaluationFull:
        """Change the priority of an evaluation's jobs. The priority orders the workspace's work in the line.
        Work under way is not interrupted. 409 if the evaluation is over.
        """
        return self._json(EvaluationFull, "POST", f"/evaluations/{evaluation_id}/priority", body=body, again=True)

    def pause(self, evaluation_id: int) -> EvaluationFull:
        """Pause an evaluation; nothing is lost."""
        return self._json(EvaluationFull, "POST", f"/evaluations/{evaluation_id}/pause", again=True)

    def resume(self, evaluation_id: int) -> EvaluationFull:
        """Resume an evaluation after a pause or failure."""
        return self._json(EvaluationFull, "POST", f"/evaluations/{evaluation_id}/resume")

    def cancel(self, evaluation_id: int) -> EvaluationFull:
        """Cancel an evaluation for good."""
        return self._json(EvaluationFull, "POST", f"/evaluations/{evaluation_id}/cancel", again=True)

    def rerun(self, evaluation_id: int, *, resample: bool | None = None, key: str | None = None) -> EvaluationFull:
        """Run an evaluation again. Runs the stored config again. Judges' stored answers are used, unless
        `resample` asks for new samples; the earlier ones are kept.
        """
        return self._json(
            EvaluationFull,
            "POST",
            f"/evaluations/{evaluation_id}/rerun",
            query={"resample": resample},
            key=key or new_key(),
        )

    def show_results(
        self, evaluation_id: int
    ) -> (
        JudgeAuditResults
        | RewardBenchmarkResults
        | CriterionAuditResults
        | RubricbenchResults
        | StudyResults
        | MetajudgeResults
        | PolicyResults
        | GenerateResults
        | PassRateResults
        | RubricAuditResults
        | GradeOrCompareResults
    ):
        """Results, number by number. By `recipe`: each section holds numbers of one shape, with n, interval and
        what is missing. 409 (`no_results`) before there are results.
        """
        found: (
            JudgeAuditResults
            | RewardBenchmarkResults
            | CriterionAuditResults
            | RubricbenchResults
            | StudyResults
            | MetajudgeResults
            | PolicyResults
            | GenerateResults
            | PassRateResults
            | RubricAuditResults
            | GradeOrCompareResults
        ) = self._any("GET", f"/evaluations/{evaluation_id}/results")
        return found

    def results_csv(self, evaluation_id: int, to: Path) -> Path:
        """Results as CSV, a line for each number. Text that a spreadsheet would run begins with an apostrophe."""
        return self._file(to, f"/evaluations/{evaluation_id}/results/csv")

    def leaks(self, evaluation_id: int) -> EvaluationLeaks:
        """Training data of its models that are also in its examples. Leaks for models of the registry and of
        runs. The training data of models elsewhere are not known.
        """
        return self._json(EvaluationLeaks, "GET", f"/evaluations/{evaluation_id}/leaks")

    def cases(
        self, evaluation_id: int, *, tag: list[str] | None = None, page_size: int | None = None
    ) -> Iterator[CaseOut]:
        """The cases behind a number."""
        return self._pages(CaseOut, f"/evaluations/{evaluation_id}/cases", query={"tag": tag, "limit": page_size})

    def case(self, evaluation_id: int, number: int) -> CaseOut:
        """One case."""
        return self._json(CaseOut, "GET", f"/evaluations/{evaluation_id}/cases/{number}")

    def export_json(self, evaluation_id: int) -> dict[str, Any]:
        """An evaluation with all its cases in one file. The evaluation as above with all its `cases`."""
        return self._json(dict[str, Any], "GET", f"/evaluations/{evaluation_id}/export")

    def export_html(self, evaluation_id: int, to: Path) -> Path:
        """A self-contained HTML report."""
        return self._file(to, f"/evaluations/{evaluation_id}/report")

    def make_tasks(self, evaluation_id: int, body: TasksIn) -> TasksOut:
        """Ask people about cases. The examples behind the cases with all of `tags` become a dataset and an open
        project on it.
        """
        return self._json(TasksOut, "POST", f"/evaluations/{evaluation_id}/tasks", body=body)

    def grade_next_state(self, evaluation_id: int) -> GradeNextOut:
        """Responses that people should grade next to correct the judge's score. 409 `not_corrected` if the
        evaluation has no score that people correct.
        """
        return self._json(GradeNextOut, "GET", f"/evaluations/{evaluation_id}/grade-next")

    def grade_next(self, evaluation_id: int, body: GradeNextIn) -> GradeNextOut:
        """Ask people to grade the responses that narrow the corrected score's interval. The responses `to grade
        next` become a dataset and an open project on it, once for each evaluation: 201 if it is made now, 200
        if it was there. A worker makes the tasks. Run the evaluation again with the dataset under `graded`
        once the answers are published.
        """
        return self._json(GradeNextOut, "POST", f"/evaluations/{evaluation_id}/grade-next", body=body)

    def study_list(self, evaluation_id: int, *, page_size: int | None = None) -> Iterator[StudyOut]:
        """Studies made from a RubricBench evaluation."""
        return self._pages(StudyOut, f"/evaluations/{evaluation_id}/studies", query={"limit": page_size})

    def make_study(self, evaluation_id: int, body: StudyIn) -> TasksOut:
        """Ask people to judge by either rubric. An open project in two arms on the pairs that the model wrote a
        rubric for; nobody sees a pair in both. Its answers are read by an evaluation of recipe `study` on the
        same dataset.
        """
        return self._json(TasksOut, "POST", f"/evaluations/{evaluation_id}/studies", body=body)

    def leaderboards(self) -> BoardList:
        """Benchmarks that something was measured on. The last measured benchmark first. A benchmark is a recipe
        on data with settings; its rows can be compared.
        """
        return self._json(BoardList, "GET", "/leaderboards")

    def leaderboard(self, benchmark: str) -> BoardOut:
        """One leaderboard, the best first."""
        return self._json(BoardOut, "GET", f"/leaderboards/{quote_part(benchmark)}")

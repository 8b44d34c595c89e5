"""The group `judges` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group


class ComparisonIn(TypedDict):
    """Numbers of two versions. They judge the judge's fixed examples; what is stored is not called again."""

    before: int
    after: int
    extra: NotRequired[ExtraIn]


class ExtraIn(TypedDict):
    """Inputs that examples do not have: a rubric to match or improve, a judge's reasons, a rationale, a verdict."""

    generated: NotRequired[list[str]]
    model_reasons: NotRequired[list[str]]
    rationale: NotRequired[str]
    verdict: NotRequired[str]


class JudgeChange(TypedDict):
    """Absent fields stay as they are. `fixed_examples`: ids of examples of one dataset, on which versions are
    compared.
    """

    name: NotRequired[str | None]
    archived: NotRequired[bool | None]
    fixed_examples: NotRequired[list[int] | None]


class JudgeIn(TypedDict):
    spec: dict[str, Any]
    endpoint: int
    note: NotRequired[str]
    name: str


class JudgeKindList(TypedDict):
    items: list[JudgeKindOut]
    next: None


class JudgeKindOut(TypedDict):
    """`spec` is the complete spec with its defaults, `spec_schema` draws its form, `variables` are those of its
    templates.
    """

    name: str
    title: str
    help: str
    variables: dict[str, str]
    required: list[str]
    spec: dict[str, Any]
    spec_schema: dict[str, Any]
    answer_schema: dict[str, Any]


class JudgeOut(TypedDict):
    id: int
    name: str
    kind: str
    fixed_examples: list[int]
    created_at: str
    archived_at: str | None


class JudgeRow(TypedDict):
    id: int
    name: str
    kind: str
    fixed_examples: list[int]
    created_at: str
    archived_at: str | None
    latest: JudgeVersionOut | None
    version_count: int


class JudgeVersionOut(TypedDict):
    id: int
    judge_id: int
    number: int
    spec: dict[str, Any]
    endpoint_id: int
    endpoint: str
    digest: str
    note: str
    created_at: str
    first_used_at: str | None


class TrainedJudgeIn(TypedDict):
    name: NotRequired[str]


class TrialIn(TypedDict):
    spec: dict[str, Any]
    endpoint: int
    examples: list[int]
    judge: NotRequired[int | None]
    extra: NotRequired[ExtraIn]


class TrialOut(TypedDict):
    """`state` goes from queued over running to finished or failed; `results` fill up meanwhile. A draft's:
    `calls`, each with messages, raw, parsed and problem. A comparison's: `rows` with both decisions, and how
    many of those `compared` are `changed`; `missing` have no verdict on a side.
    """

    id: int
    judge_id: int | None
    before_id: int | None
    after_id: int | None
    examples: list[int]
    state: str
    problem: str
    done: int
    total: int | None
    results: dict[str, Any]
    created_at: str
    finished_at: str | None


class VerdictOut(TypedDict):
    """`request` is what was sent, `raw` what came back. Tokens add up over `attempts`; cost is None without
    prices.
    """

    id: int
    key: str
    state: str
    subject: dict[str, Any]
    parsed: dict[str, Any] | None
    problem: str
    source: str
    created_at: str
    version_id: int
    request: dict[str, Any] | None
    raw: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    cost: str | None
    latency_ms: int | None
    attempts: int


class VerdictRow(TypedDict):
    id: int
    key: str
    state: str
    subject: dict[str, Any]
    parsed: dict[str, Any] | None
    problem: str
    source: str
    created_at: str


class VersionDetail(TypedDict):
    """`counts`: how many verdicts are stored, by state."""

    id: int
    judge_id: int
    number: int
    spec: dict[str, Any]
    endpoint_id: int
    endpoint: str
    digest: str
    note: str
    created_at: str
    first_used_at: str | None
    counts: dict[str, int]


class VersionIn(TypedDict):
    spec: dict[str, Any]
    endpoint: int
    note: NotRequired[str]


class Judges(Group):
    def kinds(self) -> JudgeKindList:
        """The kinds of judges, with their default templates."""
        return self._json(JudgeKindList, "GET", "/judge-kinds")

    def all(self, *, page_size: int | None = None, archived: bool | None = None) -> Iterator[JudgeRow]:
        """Judges, newest first."""
        return self._pages(JudgeRow, "/judges", query={"limit": page_size, "archived": archived})

    def create(self, body: JudgeIn) -> JudgeVersionOut:
        """Create a judge with its first version."""
        return self._json(JudgeVersionOut, "POST", "/judges", body=body)

    def get(self, judge_id: int) -> JudgeOut:
        """One judge."""
        return self._json(JudgeOut, "GET", f"/judges/{judge_id}")

    def change(self, judge_id: int, body: JudgeChange) -> JudgeOut:
        """Rename or archive a judge, or choose its fixed examples."""
        return self._json(JudgeOut, "PATCH", f"/judges/{judge_id}", body=body)

    def versions(self, judge_id: int, *, page_size: int | None = None) -> Iterator[JudgeVersionOut]:
        """A judge's versions, newest first."""
        return self._pages(JudgeVersionOut, f"/judges/{judge_id}/versions", query={"limit": page_size})

    def new_version(self, judge_id: int, body: VersionIn) -> JudgeVersionOut:
        """Create the next version. If an earlier version has the same content, the response has that version."""
        return self._json(JudgeVersionOut, "POST", f"/judges/{judge_id}/versions", body=body)

    def version(self, judge_id: int, number: int) -> VersionDetail:
        """One version."""
        return self._json(VersionDetail, "GET", f"/judges/{judge_id}/versions/{number}")

    def verdicts(
        self,
        judge_id: int,
        number: int,
        *,
        state: Literal["", "done", "missing", "failed"] | None = None,
        page_size: int | None = None,
    ) -> Iterator[VerdictRow]:
        """Verdicts of a version."""
        return self._pages(
            VerdictRow, f"/judges/{judge_id}/versions/{number}/verdicts", query={"state": state, "limit": page_size}
        )

    def verdict(self, verdict_id: int) -> VerdictOut:
        """One verdict, down to the raw text."""
        return self._json(VerdictOut, "GET", f"/verdicts/{verdict_id}")

    def try_draft(self, body: TrialIn) -> TrialOut:
        """Try a draft on examples. Nothing enters the verdict store. Ask for the trial until its state is
        finished or failed.
        """
        return self._json(TrialOut, "POST", "/judge-trials", body=body)

    def compare(self, judge_id: int, body: ComparisonIn) -> TrialOut:
        """Compare two versions."""
        return self._json(TrialOut, "POST", f"/judges/{judge_id}/comparisons", body=body)

    def trial(self, trial_id: int) -> TrialOut:
        """One trial or comparison."""
        return self._json(TrialOut, "GET", f"/judge-trials/{trial_id}")

    def of_model(self, model_id: int, body: TrainedJudgeIn) -> JudgeVersionOut:
        """Use a trained judge or rubric writer as a judge. A judge with the prompt and the reader that the run
        trained the model with, and an endpoint with its weights. What was made before is answered again. 409
        if the model is not an output of a run that trains judges, or if its files are gone.
        """
        return self._json(JudgeVersionOut, "POST", f"/models/{model_id}/judge", body=body)

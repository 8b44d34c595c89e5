"""The group `annotation` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group
from .shared import AssignmentOut, CommentOut, Criterion, QueueOut, VerifierSpec


class CommentIn(TypedDict):
    kind: NotRequired[Literal["remark", "guidelines"]]
    text: str


class DecideIn(TypedDict):
    """`decisions`: row -> {"action": keep|merge|edit|drop|set, ...}; or the whole `content` in the subject's
    frame.
    """

    answers: list[int]
    decisions: NotRequired[dict[str, dict[str, Any]] | None]
    content: NotRequired[dict[str, Any] | None]
    unresolved: NotRequired[bool]
    why: NotRequired[str]


class DraftIn(TypedDict):
    content: dict[str, Any]
    revision: int
    seconds: NotRequired[float]


class DraftOut(TypedDict):
    revision: int
    saved_at: str


class FlagIn(TypedDict):
    kind: NotRequired[str]
    text: str


class FlagOut(TypedDict):
    id: int
    kind: str
    text: str
    created_at: str


class Formatted(TypedDict):
    html: list[str]


class GroupsIn(TypedDict):
    answers: list[int]
    groups: list[list[list[Any]]]


class HintOut(TypedDict):
    code: Literal[
        "compound", "duplicate", "contradiction", "vague", "negated", "no_positive", "too_few", "too_many", "verifier"
    ]
    message: str
    criterion: int | None
    other: int | None


class LineIn(TypedDict):
    """A criterion as it is being written."""

    text: NotRequired[str]
    points: NotRequired[float | None]
    verifier: NotRequired[VerifierSpec | None]


class RenewOut(TypedDict):
    state: str
    lease_until: str


class ResponseIn(TypedDict):
    letter: str
    text: str


class Rubric(TypedDict):
    """Ordered criteria with at least one positive one, so that the score has a denominator."""

    criteria: list[Criterion]


class RubricCheckIn(TypedDict):
    criteria: list[LineIn]


class RubricCheckOut(TypedDict):
    hints: list[HintOut]


class SendBackIn(TypedDict):
    words: str


class SentBackOut(TypedDict):
    assignment: int
    state: str
    sent_back: str


class SettleIn(TypedDict):
    settled: NotRequired[bool]


class SkipIn(TypedDict):
    reason: str
    hold: NotRequired[int]


class SkipOut(TypedDict):
    queue: QueueOut


class StressIn(TypedDict):
    rubric: Rubric
    responses: list[ResponseIn]


class SubmitIn(TypedDict):
    content: dict[str, Any]
    revision: NotRequired[int | None]
    seconds: NotRequired[float]
    guidelines: NotRequired[int | None]
    hold: NotRequired[int]


class SubmitOut(TypedDict):
    answer: SubmittedOut
    feedback: dict[str, Any] | None
    after: dict[str, Any] | None
    stress: dict[str, Any] | None
    queue: QueueOut


class SubmittedOut(TypedDict):
    id: int
    revision: int


class Texts(TypedDict):
    texts: list[str]
    inline: NotRequired[bool]
    preview: NotRequired[bool]


class Annotation(Group):
    def assignment(self, assignment_id: int) -> AssignmentOut:
        """One of your own tasks."""
        return self._json(AssignmentOut, "GET", f"/assignments/{assignment_id}")

    def draft(self, assignment_id: int, body: DraftIn) -> DraftOut:
        """Save a draft. `revision` is the revision that this draft changes; 409 with `current` if another window
        has saved meanwhile.
        """
        return self._json(DraftOut, "PUT", f"/assignments/{assignment_id}/draft", body=body)

    def submit(self, assignment_id: int, body: SubmitIn) -> SubmitOut:
        """Submit, and get the next task. The same submission sent twice is one answer. 422 with the wrong fields
        below `content`; 409 `seat_taken` if the time for the task ran out and others completed it: the
        content is then kept as the draft.
        """
        return self._json(SubmitOut, "POST", f"/assignments/{assignment_id}/submit", body=body)

    def skip(self, assignment_id: int, body: SkipIn) -> SkipOut:
        """Skip, and get the next task. The seat goes to another person; you are not asked again."""
        return self._json(SkipOut, "POST", f"/assignments/{assignment_id}/skip", body=body)

    def reopen(self, assignment_id: int) -> AssignmentOut:
        """Reopen a submission. The answer becomes the draft, and stands until the next submission;
        `settings.reopen` says how many may be reopened.
        """
        return self._json(AssignmentOut, "POST", f"/assignments/{assignment_id}/reopen")

    def renew(self, assignment_id: int) -> RenewOut:
        """Renew the lease of your open tasks. All your open tasks in the project stay yours for another lease. A
        page that stays open calls this.
        """
        return self._json(RenewOut, "POST", f"/assignments/{assignment_id}/renew")

    def stress_test(self, assignment_id: int) -> dict[str, Any]:
        """The stress test of a rubric that you submitted. The stress test as the submission returned it, with
        the judge's verdicts since then; `judging` while the judge is being asked. 404 if there is no such
        test.
        """
        return self._json(dict[str, Any], "GET", f"/assignments/{assignment_id}/stress")

    def flag(self, assignment_id: int, body: FlagIn) -> FlagOut:
        """Remark on a task. `kind`: `remark`, or `guidelines` if they need an update."""
        return self._json(FlagOut, "POST", f"/assignments/{assignment_id}/flag", body=body)

    def render(self, body: Texts) -> Formatted:
        """Markdown as safe HTML, as the pages show it."""
        return self._json(Formatted, "POST", "/render", body=body, again=True)

    def check(self, body: RubricCheckIn) -> RubricCheckOut:
        """Structural hints about a rubric, finished or not."""
        return self._json(RubricCheckOut, "POST", "/rubrics/check", body=body, again=True)

    def try_on(self, body: StressIn) -> dict[str, Any]:
        """Try a rubric on responses: verifiers' verdicts, scores, and the criteria that separate the responses."""
        return self._json(dict[str, Any], "POST", "/rubrics/stress", body=body)

    def get_review(self, task_id: int) -> dict[str, Any]:
        """A task with its answers, remarks and decision."""
        return self._json(dict[str, Any], "GET", f"/tasks/{task_id}/review")

    def decide(self, task_id: int, body: DecideIn) -> dict[str, Any]:
        """Decide the resolved judgement of a task. 409 `answers_changed` if `answers` are no longer those that
        stand. The response has the task after the decision.
        """
        return self._json(dict[str, Any], "PUT", f"/tasks/{task_id}/resolution", body=body)

    def undo(self, task_id: int, *, at: str | None = None) -> dict[str, Any]:
        """Undo the last decision. With `at`, only the decision with this `resolution.at`: 409 if another one
        holds now.
        """
        return self._json(dict[str, Any], "DELETE", f"/tasks/{task_id}/resolution", query={"at": at})

    def regroup(self, task_id: int, body: GroupsIn) -> dict[str, Any]:
        """Say which items say the same."""
        return self._json(dict[str, Any], "PUT", f"/tasks/{task_id}/groups", body=body)

    def comment(self, task_id: int, body: CommentIn) -> CommentOut:
        """Remark on a task."""
        return self._json(CommentOut, "POST", f"/tasks/{task_id}/comments", body=body)

    def settle(self, comment_id: int, body: SettleIn) -> CommentOut:
        """Mark a remark as resolved, or as open again."""
        return self._json(CommentOut, "POST", f"/comments/{comment_id}/settle", body=body)

    def send_back(self, assignment_id: int, body: SendBackIn) -> SentBackOut:
        """Send an answer back to its author."""
        return self._json(SentBackOut, "POST", f"/assignments/{assignment_id}/send-back", body=body)

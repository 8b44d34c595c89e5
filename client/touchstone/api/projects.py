"""The group `projects` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, new_key
from .shared import CommentOut, DatasetIn, QueueOut


class AgreementOut(TypedDict):
    """`computing`: newer answers are being counted; `report` is the last result, as of `computed_at`, or null."""

    state: Literal["ready", "computing"]
    computed_at: str | None
    started_at: str | None
    report: dict[str, Any] | None


class AnswerOut(TypedDict):
    """`content` names responses by their ids: swapped sides are turned back. `name` only if names were asked
    for.
    """

    id: int
    task: int
    example: str
    domain: str
    kind: str
    rater: str
    name: str | None
    subject: dict[str, Any]
    content: dict[str, Any]
    guidelines: int | None
    seconds: float | None
    suggestion: str
    suggested_by: str
    revision: int
    current: bool
    state: Literal["standing", "reopened", "superseded"]
    gold: bool
    gold_right: bool | None
    gold_recall: float | None
    submitted_at: str
    shown_order: list[int]
    resolution: str | None


class ClaimIn(TypedDict):
    hold: NotRequired[int]


class CommentList(TypedDict):
    items: list[CommentOut]
    next: str | None


class FiguresOut(TypedDict):
    """`median_seconds` leaves out answers whose time was not measured; `agreement` is the plain share of equal
    answers among pairs with somebody else on the same task, not corrected for chance.
    """

    done: int
    median_seconds: float | None
    fast: ShareOut
    gold: ShareOut
    agreement: ShareOut


class GoldIn(TypedDict):
    content: dict[str, Any] | None


class GuidelinesIn(TypedDict):
    text: str
    base: NotRequired[int | None]


class GuidelinesList(TypedDict):
    items: list[GuidelinesOut]
    next: str | None


class GuidelinesOut(TypedDict):
    number: int
    text: str
    author: str | None
    created_at: str
    answers: int


class InviteList(TypedDict):
    items: list[ProjectInviteOut]
    next: str | None


class JobList(TypedDict):
    items: list[JobOut]
    next: str | None


class JobOut(TypedDict):
    """Work over the whole project: `match`, `majority`, `publish` or `suggest`; the last of each."""

    kind: str
    state: str
    done: int
    total: int | None
    result: dict[str, Any]
    problem: str
    created_at: str
    finished_at: str | None


class JoinIn(TypedDict):
    secret: str


class JoinOut(TypedDict):
    project: int
    name: str
    workspace: str


class Keys(TypedDict):
    keys: dict[str, str]


class KindList(TypedDict):
    items: list[KindOut]
    settings: dict[str, Any]
    next: str | None


class KindOut(TypedDict):
    name: str
    title: str
    text: str
    needs: list[str]
    answer: dict[str, Any]


class LabelsOut(TypedDict):
    """The number of labels by their fate; `cases` is the address of these labels one by one."""

    fate: Literal["kept", "replaced", "imported", "dropped"]
    label: str
    count: int
    cases: str
    reasons: list[ReasonOut]


class MajorityIn(TypedDict):
    minimum: NotRequired[float]


class MajorityOut(TypedDict):
    resolved: int | None


class MarkIn(TypedDict):
    source: Literal["labels", "answers"]
    most: NotRequired[int]
    least: NotRequired[int]


class MarkOut(TypedDict):
    made: int
    looked: int


class MatchOut(TypedDict):
    started: bool


class MineRow(TypedDict):
    id: int
    state: str
    submitted_at: str
    excerpt: str


class NewInviteOut(TypedDict):
    id: int
    email: str
    mailed: bool
    uses_left: int
    created_at: str
    expires_at: str
    link: str | None


class ParticipantIn(TypedDict):
    """A member of the workspace, by id or by address."""

    user: NotRequired[int | None]
    email: NotRequired[str | None]


class PausedIn(TypedDict):
    paused: bool


class PersonList(TypedDict):
    state: Literal["ready", "computing"]
    computed_at: str | None
    items: list[PersonOut]
    next: str | None


class PersonOut(TypedDict):
    """`user`, `name` and `email` are null for reviewers, who see pseudonyms."""

    rater: str | None
    user: int | None
    name: str | None
    email: str | None
    role: str | None
    takes_part: bool
    paused: bool
    joined_at: str | None
    last_at: str | None
    skipped: int
    open: int
    total: FiguresOut
    points: list[PointOut]
    warnings: list[str]


class PointOut(TypedDict):
    done: int
    median_seconds: float | None
    fast: ShareOut
    gold: ShareOut
    agreement: ShareOut
    at: str


class ProjectChange(TypedDict):
    """Absent fields stay as they are; settings are merged over the present ones."""

    name: NotRequired[str | None]
    overlap: NotRequired[int | None]
    settings: NotRequired[dict[str, Any] | None]


class ProjectIn(TypedDict):
    name: str
    kind: Literal["pairwise", "rubric", "grading", "ranking", "rating", "rationale", "best_worst", "trace_steps"]
    dataset: int | str | DatasetIn
    overlap: NotRequired[int]
    strategy: NotRequired[Literal["order", "random", "uncertainty", "disagreement"]]
    settings: NotRequired[dict[str, Any]]
    guidelines: NotRequired[str]
    open: NotRequired[bool]


class ProjectInviteIn(TypedDict):
    uses: NotRequired[int]
    days: NotRequired[int]
    email: NotRequired[str | None]


class ProjectInviteOut(TypedDict):
    id: int
    email: str
    mailed: bool
    uses_left: int
    created_at: str
    expires_at: str


class ProjectOut(TypedDict):
    id: int
    name: str
    kind: str
    state: str
    version: ProjectVersionOut
    overlap: int
    strategy: str
    settings: Settings
    tasks_made: bool
    tasks_problem: str
    created_at: str
    progress: ProjectProgressOut
    people: int
    alpha: float | None


class ProjectProgressOut(TypedDict):
    """Gold tasks are counted separately: everybody may answer them, so they are never complete."""

    tasks: int
    complete: int
    in_work: int
    untouched: int
    seats: int
    seats_done: int
    gold: int
    fraction: float | None


class ProjectVersionOut(TypedDict):
    dataset_id: int
    dataset: str
    number: int
    digest: str


class PublishIn(TypedDict):
    what: NotRequired[Literal["answers", "resolutions"] | None]
    minimum: NotRequired[float]
    sources: NotRequired[list[Literal["unanimous", "consolidated", "majority"]]]
    replace: NotRequired[bool]
    rest: NotRequired[bool]
    base: NotRequired[int | None]


class PublishedCaseOut(TypedDict):
    """`whose`: `annotator-3@project-1`, `majority@project-1` or the like, or `imported:` and a name. `answers`:
    the number of answers of this project that it represents.
    """

    example: str
    task: int | None
    fate: str
    reason: str
    whose: str
    says: str
    answers: int


class PublishedOut(TypedDict):
    """`version` and `publication` are null while a job is working. `labels` counts those of the judged examples,
    `untouched` the preferences of all others, `left_out` those that are not in the version. `answers` counts
    people's answers behind the labels that are kept.
    """

    publication: int | None
    dataset: int
    version: int | None
    version_id: int | None
    digest: str | None
    counts: dict[str, int]
    base: int
    choice: dict[str, Any]
    labels: list[LabelsOut]
    answers: int | None
    untouched: int | None
    left_out: int | None


class ReasonOut(TypedDict):
    reason: str
    label: str
    count: int
    cases: str


class RemovedOut(TypedDict):
    removed: int


class ReviewRow(TypedDict):
    task: int
    example: str
    domain: str
    agreement: float | None
    answers: int
    source: str | None


class Scale(TypedDict):
    """A named scale from `low` to `high` with words for some of its values."""

    name: str
    low: int
    high: int
    labels: dict[str, str]
    help: str


class SeatOut(TypedDict):
    """`user` and `name` only if names were asked for."""

    rater: str
    user: int | None
    name: str | None
    state: str
    claimed_at: str
    submitted_at: str | None
    seconds: float | None
    skip_reason: str
    sent_back: str
    answers: list[TaskAnswerOut]


class Settings(TypedDict):
    """Settings of a project. A setting that does not concern its kind is ignored."""

    reasons: Literal["required", "optional", "none"]
    dimensions: list[str]
    scales: list[Scale]
    ranking: Literal["order", "best"]
    stress_test: bool
    stress_judge: int | None
    lease_minutes: int
    gold_every: int
    gold_feedback: bool
    gold_recall: float
    fast_seconds: float
    suggestions: Literal["never", "before", "after"]
    publish: Literal["resolutions", "answers"]
    reopen: int
    keys: dict[str, str]


class SettledStepIn(TypedDict):
    run: int
    experiment: NotRequired[str]
    name: NotRequired[str]


class SettledStepOut(TypedDict):
    id: int
    name: str
    recipe: str
    like: int
    experiment: str
    state: str
    reason: str
    run: int | None
    created_at: str


class SettledSteps(TypedDict):
    settled: bool
    why_not: str
    items: list[SettledStepOut]


class ShareOut(TypedDict):
    part: int
    whole: int
    value: float | None


class SizeIn(TypedDict):
    kind: Literal["pairwise", "rubric", "grading", "ranking", "rating", "rationale", "best_worst", "trace_steps"]
    dataset: int | str | DatasetIn
    overlap: NotRequired[int]


class SizeOut(TypedDict):
    tasks: int
    answers: int
    examples: int
    exact: bool


class StateIn(TypedDict):
    state: Literal["open", "paused", "closed"]


class StatusOut(TypedDict):
    """`reason` says why `per_day` or `finish` is null."""

    progress: ProjectProgressOut
    open_now: int
    per_day: float | None
    finish: str | None
    reason: str
    throughput: list[dict[str, Any]]
    warnings: list[str]


class SuggestIn(TypedDict):
    """A judge's version, by the judge's id and the version's number."""

    judge: int
    number: int
    tokens: NotRequired[int | None]


class SuggestionsOut(TypedDict):
    """`by`: {whose: tasks}. `agreement`: {"saw it before" | "saw it after" | "never saw it": an estimate with n
    and interval}. `job`: the last time a judge was asked.
    """

    tasks: int
    suggested: int
    by: dict[str, int]
    agreement: dict[str, dict[str, Any]]
    job: JobOut | None


class TaskAnswerOut(TypedDict):
    id: int
    revision: int
    content: dict[str, Any]
    seconds: float | None
    guidelines: int | None
    suggestion: str
    suggested_by: str
    gold_right: bool | None
    gold_detail: dict[str, Any] | None
    submitted_at: str


class TaskCommentOut(TypedDict):
    id: int
    kind: str
    text: str
    author: str | None
    created_at: str
    resolved_at: str | None


class TaskDetail(TypedDict):
    id: int
    example: int
    key: str
    excerpt: str
    subject: dict[str, Any]
    state: str
    overlap: int | None
    taken: int
    done: int
    gold: dict[str, Any] | None
    resolution: str | None
    skips: int
    remarks: int
    seats: list[SeatOut]
    comments: list[TaskCommentOut]


class TaskOut(TypedDict):
    id: int
    example: int
    key: str
    excerpt: str
    subject: dict[str, Any]
    state: str
    overlap: int | None
    taken: int
    done: int
    gold: dict[str, Any] | None
    resolution: str | None
    skips: int
    remarks: int


class WaitingList(TypedDict):
    items: list[WaitingOut]
    next: str | None


class WaitingOut(TypedDict):
    """A project that you take part in; `free` is counted up to 1,000. `held` tasks are open, also those that
    were answered and are open again, which `done` counts.
    """

    project: int
    name: str
    kind: str
    state: str
    paused: bool
    done: int
    free: int
    held: int
    sent_back: int
    last_at: str | None


class WinList(TypedDict):
    """`items` is null if there are too many answers."""

    items: list[WinOut] | None


class WinOut(TypedDict):
    """`rate`: the share of tasks in which `first` is preferred, with `low`, `high` (95%), `n` and `missing`."""

    first: str
    second: str
    rate: dict[str, Any]
    won: int
    tied: int
    lost: int


class WithdrawnOut(TypedDict):
    withdrawn: int


class Projects(Group):
    def claim(self, project_id: int, body: ClaimIn) -> QueueOut:
        """Your open tasks, filled up from the queue. Up to `hold` tasks, in serving order. Asking again gives
        the same ones. `reason` says why there is none: `none_left`, `paused`, `you_are_paused` or `closed`;
        `left`, the number of further tasks that you have not answered, is null for 1,000 or more; in the
        answer to a submission it is null for more than 50.
        """
        return self._json(QueueOut, "POST", f"/projects/{project_id}/claim", body=body)

    def my_tasks(self, project_id: int, *, page_size: int | None = None) -> Iterator[MineRow]:
        """Your last submissions, newest first."""
        return self._pages(MineRow, f"/projects/{project_id}/mine", query={"limit": page_size})

    def kinds(self) -> KindList:
        """The kinds of task: what they ask, what an answer is."""
        return self._json(KindList, "GET", "/projects/kinds")

    def all(
        self, *, page_size: int | None = None, state: Literal["draft", "open", "paused", "closed"] | None = None
    ) -> Iterator[ProjectOut]:
        """The projects of this workspace, newest first."""
        return self._pages(ProjectOut, "/projects", query={"limit": page_size, "state": state})

    def create(self, body: ProjectIn) -> ProjectOut:
        """Create a project. Freezes the version. A worker makes the tasks: `tasks_made` says when they are
        there. 422 names every wrong field.
        """
        return self._json(ProjectOut, "POST", "/projects", body=body)

    def size(self, body: SizeIn) -> SizeOut:
        """The number of tasks that a project would make; nothing is written."""
        return self._json(SizeOut, "POST", "/projects/size", body=body, again=True)

    def mine(self) -> WaitingList:
        """Projects that ask for your own judgement. For every role: the projects you take part in, those with
        work first.
        """
        return self._json(WaitingList, "GET", "/projects/mine")

    def get(self, project_id: int) -> ProjectOut:
        """One project with its progress."""
        return self._json(ProjectOut, "GET", f"/projects/{project_id}")

    def change(self, project_id: int, body: ProjectChange) -> ProjectOut:
        """Change name, overlap or settings."""
        return self._json(ProjectOut, "PATCH", f"/projects/{project_id}", body=body)

    def set_state(self, project_id: int, body: StateIn) -> ProjectOut:
        """Open, pause or close a project. 409 if its present state does not allow the new one."""
        return self._json(ProjectOut, "POST", f"/projects/{project_id}/state", body=body, again=True)

    def progress(self, project_id: int) -> StatusOut:
        """The progress of a project, its speed, and its expected end."""
        return self._json(StatusOut, "GET", f"/projects/{project_id}/progress")

    def list_jobs(self, project_id: int) -> JobList:
        """Jobs of workers over the whole project. The last job of each kind, with its progress and its result."""
        return self._json(JobList, "GET", f"/projects/{project_id}/jobs")

    def list_guidelines(self, project_id: int) -> GuidelinesList:
        """Versions of the guidelines, newest first."""
        return self._json(GuidelinesList, "GET", f"/projects/{project_id}/guidelines")

    def new_guidelines(self, project_id: int, body: GuidelinesIn) -> GuidelinesOut:
        """Write a new version of the guidelines. If the same text is sent again, the response has the version
        with this text.
        """
        return self._json(GuidelinesOut, "POST", f"/projects/{project_id}/guidelines", body=body)

    def people(self, project_id: int) -> PersonList:
        """The work of each person. Amount, speed, gold tasks, agreement with others, and how these drift; the
        busiest person first. The figures are as of `computed_at`; with `state` `computing`, newer answers are
        being counted. Reviewers see pseudonyms.
        """
        return self._json(PersonList, "GET", f"/projects/{project_id}/people")

    def add(self, project_id: int, body: ParticipantIn) -> PersonOut:
        """Add a member to a project."""
        return self._json(PersonOut, "POST", f"/projects/{project_id}/people", body=body)

    def pause(self, project_id: int, user_id: int, body: PausedIn) -> PersonOut:
        """Pause a person, or let a paused person continue. The open tasks of a paused person go back to the
        queue; their drafts are kept.
        """
        return self._json(PersonOut, "PATCH", f"/projects/{project_id}/people/{user_id}", body=body)

    def invites(self, project_id: int) -> InviteList:
        """Invitation links that still work."""
        return self._json(InviteList, "GET", f"/projects/{project_id}/invites")

    def invite(self, project_id: int, body: ProjectInviteIn) -> NewInviteOut:
        """Create an invitation link. The person who opens the link becomes an annotator of the workspace and
        works in this project. With `email` it is for that address alone, and opening it shows that the
        address is theirs. If this installation sends mail, it goes there, and `link` is null.
        """
        return self._json(NewInviteOut, "POST", f"/projects/{project_id}/invites", body=body)

    def revoke(self, project_id: int, invite_id: int) -> None:
        """Revoke an invitation link."""
        self._nothing("DELETE", f"/projects/{project_id}/invites/{invite_id}")

    def join(self, body: JoinIn) -> JoinOut:
        """Follow an invitation link. Joins with the account that asks. 409 if the link is used up, expired or
        revoked.
        """
        return self._json(JoinOut, "POST", "/projects/join", body=body)

    def tasks(
        self, project_id: int, *, state: str | None = None, q: str | None = None, page_size: int | None = None
    ) -> Iterator[TaskOut]:
        """The tasks of a project. `state`: open, in_work, complete, gold, skipped or flagged; `q`: words of the
        key or the prompt.
        """
        return self._pages(TaskOut, f"/projects/{project_id}/tasks", query={"state": state, "q": q, "limit": page_size})

    def task(self, project_id: int, task_id: int, *, names: bool | None = None) -> TaskDetail:
        """One task with its answers. `names`: show names beside the pseudonyms; not for reviewers."""
        return self._json(TaskDetail, "GET", f"/projects/{project_id}/tasks/{task_id}", query={"names": names})

    def set_gold(self, project_id: int, task_id: int, body: GoldIn) -> TaskDetail:
        """Make a task a gold task. Existing answers are compared with it. 409 for kinds whose answers cannot be
        checked.
        """
        return self._json(TaskDetail, "PUT", f"/projects/{project_id}/tasks/{task_id}/gold", body=body)

    def mark(self, project_id: int, body: MarkIn) -> MarkOut:
        """Create gold tasks from known answers. `labels`: preferences of the data that agree; `answers`: answers
        of complete tasks that are alike.
        """
        return self._json(MarkOut, "POST", f"/projects/{project_id}/gold", body=body)

    def set_keys(self, project_id: int, body: Keys) -> Keys:
        """Choose your own keys for a project's workbench."""
        return self._json(Keys, "PATCH", f"/projects/{project_id}/keys", body=body)

    def model_wins(self, project_id: int) -> WinList:
        """The models that people prefer, with intervals. The project must be pairwise, and its responses must
        name their models. A tie counts half, and so does a pair of which both are bad.
        """
        return self._json(WinList, "GET", f"/projects/{project_id}/wins")

    def get_agreement(self, project_id: int) -> AgreementOut:
        """Agreement by field, domain and pair. Percent, Cohen, Fleiss, AC1 and Krippendorff's alpha, each with n
        and a 95% interval, or `undefined` with why.
        """
        return self._json(AgreementOut, "GET", f"/projects/{project_id}/agreement")

    def list_cell(
        self, project_id: int, *, field: str, pair: str, first: str, second: str, page_size: int | None = None
    ) -> Iterator[ReviewRow]:
        """The tasks behind a confusion matrix's cell. 404 if the project has no such field, person or value."""
        return self._pages(
            ReviewRow,
            f"/projects/{project_id}/agreement/tasks",
            query={"field": field, "pair": pair, "first": first, "second": second, "limit": page_size},
        )

    def match(self, project_id: int) -> MatchOut:
        """Match items by meaning again, after a failure."""
        return self._json(MatchOut, "POST", f"/projects/{project_id}/agreement/match")

    def list_review(
        self,
        project_id: int,
        *,
        show: Literal["open", "resolved", "unresolved", "all"] | None = None,
        page_size: int | None = None,
    ) -> Iterator[ReviewRow]:
        """Complete tasks, least agreement first."""
        return self._pages(ReviewRow, f"/projects/{project_id}/review", query={"show": show, "limit": page_size})

    def accept_majority(self, project_id: int, body: MajorityIn) -> MajorityOut:
        """Accept all majorities."""
        return self._json(MajorityOut, "POST", f"/projects/{project_id}/review/majority", body=body)

    def withdraw_majority(self, project_id: int) -> WithdrawnOut:
        """Undo all accepted majorities."""
        return self._json(WithdrawnOut, "DELETE", f"/projects/{project_id}/review/majority")

    def list_comments(self, project_id: int, *, kind: Literal["", "remark", "guidelines"] | None = None) -> CommentList:
        """Open remarks about the tasks of a project."""
        return self._json(CommentList, "GET", f"/projects/{project_id}/comments", query={"kind": kind})

    def list_answers(
        self, project_id: int, *, revisions: bool | None = None, names: bool | None = None, page_size: int | None = None
    ) -> Iterator[AnswerOut]:
        """The answers of a project, oldest first."""
        return self._pages(
            AnswerOut,
            f"/projects/{project_id}/answers",
            query={"revisions": revisions, "names": names, "limit": page_size},
        )

    def export(
        self,
        project_id: int,
        to: Path,
        *,
        revisions: bool | None = None,
        names: bool | None = None,
        format: Literal["jsonl", "csv"] | None = None,
    ) -> Path:
        """All answers as JSON Lines or CSV, streamed. Un-swapped, under pseudonyms. In CSV, text that a
        spreadsheet would run begins with an apostrophe.
        """
        return self._file(
            to,
            f"/projects/{project_id}/answers/export",
            query={"revisions": revisions, "names": names, "format": format},
        )

    def publish_answers(self, project_id: int, body: PublishIn) -> PublishedOut:
        """Publish the answers as a frozen version of the dataset. 201 with the version and the fate of every
        label; 202 if there is so much that a job does it: then `publications` lists it.
        """
        return self._json(PublishedOut, "POST", f"/projects/{project_id}/publish", body=body)

    def list_publications(self, project_id: int, *, page_size: int | None = None) -> Iterator[PublishedOut]:
        """Publications of a project, newest first."""
        return self._pages(PublishedOut, f"/projects/{project_id}/publications", query={"limit": page_size})

    def get_publication(self, project_id: int, publication_id: int) -> PublishedOut:
        """One publication: its version and what became of every label."""
        return self._json(PublishedOut, "GET", f"/projects/{project_id}/publications/{publication_id}")

    def list_cases(
        self,
        project_id: int,
        publication_id: int,
        *,
        fate: Literal["", "kept", "replaced", "imported", "dropped"] | None = None,
        reason: Literal[
            "",
            "others",
            "judged",
            "earlier",
            "gold",
            "open",
            "alone",
            "agreement",
            "undecided",
            "stale",
            "unresolved",
            "source",
            "gone",
            "changed",
        ]
        | None = None,
        page_size: int | None = None,
    ) -> Iterator[PublishedCaseOut]:
        """The labels behind the counts of a publication."""
        return self._pages(
            PublishedCaseOut,
            f"/projects/{project_id}/publications/{publication_id}/cases",
            query={"fate": fate, "reason": reason, "limit": page_size},
        )

    def suggestions(self, project_id: int) -> SuggestionsOut:
        """Suggestions of judges for its tasks. The number of tasks with a judge's view, its source, and how
        often people gave the same answer, separately for each way it was shown.
        """
        return self._json(SuggestionsOut, "GET", f"/projects/{project_id}/suggestions")

    def suggest(self, project_id: int, body: SuggestIn) -> SuggestionsOut:
        """Ask a judge about its tasks. A job asks the judge about every task; `GET` shows the progress.
        `settings.suggestions` says when people see it. 409 while a judge is being asked.
        """
        return self._json(SuggestionsOut, "POST", f"/projects/{project_id}/suggestions", body=body)

    def remove_suggestions(self, project_id: int) -> RemovedOut:
        """Remove a judge's suggestions. Records of answers stay. While the judge is being asked: 409, and it is
        stopped; ask again once it has ended.
        """
        return self._json(RemovedOut, "DELETE", f"/projects/{project_id}/suggestions")

    def settled_steps(self, project_id: int) -> SettledSteps:
        """Runs that wait until a project is settled. Newest first, also those that were launched, refused or
        cancelled.
        """
        return self._json(SettledSteps, "GET", f"/projects/{project_id}/then")

    def add_settled(self, project_id: int, body: SettledStepIn, *, key: str | None = None) -> SettledStepOut:
        """Launch a run once a project is settled. Once every task has its answers and no disagreement or single
        answer waits for a decision, the answers are published, and the run trains on that version, in the
        caller's name. Decisions do not count if the project publishes each answer by itself. If the run
        cannot be launched then, it says why.
        """
        return self._json(SettledStepOut, "POST", f"/projects/{project_id}/then", body=body, key=key or new_key())

    def cancel_settled(self, project_id: int, step_id: int) -> SettledStepOut:
        """Cancel a run that waits for a project. 409 if it was launched or refused."""
        return self._json(SettledStepOut, "DELETE", f"/projects/{project_id}/then/{step_id}")

"""The group `rollouts` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, new_key


class AskedOut(TypedDict):
    project: int
    name: str
    kind: str
    task: int
    url: str
    done: int
    wanted: int | None
    answers: list[str]
    agreed: str


class FacetCriterion(TypedDict):
    text: str
    met: int
    unmet: int
    missing: int


class FacetPart(TypedDict):
    name: str
    kind: str
    weight: float | None
    shadow: bool
    judge: str
    low: float | None
    high: float | None
    valued: int
    missing: int


class FacetReason(TypedDict):
    reason: str
    count: int


class FacetStep(TypedDict):
    step: int
    phase: str
    count: int | None


class FacetsOut(TypedDict):
    steps: list[FacetStep]
    criteria: list[FacetCriterion]
    parts: list[FacetPart]
    expression: str
    excluded: list[FacetReason]


class FilterOut(TypedDict):
    """One filter, in the order in which the filters work: how many `came` to it, how many `stayed`, and cases of
    those that did not.
    """

    key: str
    title: str
    came: int
    stayed: int
    left_out: int
    cases: list[FilteredResponse]


class FilteredResponse(TypedDict):
    example_key: str
    step: int
    group: int
    index: int
    why: str
    text: str


class GroupIn(TypedDict):
    """A group of responses by its place in the run; all of them, or those that `index` names."""

    step: int
    phase: NotRequired[Literal["train", "eval"]]
    group: int
    index: NotRequired[list[int]]


class HitList(TypedDict):
    items: list[HitOut]
    more: bool


class HitOut(TypedDict):
    number: int
    words: str


class NoteChange(TypedDict):
    text: str
    revision: int


class NoteIn(TypedDict):
    """Tokens of a response, by its place in the run, and what is said of them."""

    step: int
    phase: NotRequired[Literal["train", "eval"]]
    group: int
    index: int
    start: int
    end: int
    quote: NotRequired[str | None]
    text: str


class NoteOut(TypedDict):
    id: int
    step: int
    phase: str
    group: int
    index: int
    example_key: str
    start: int
    end: int
    quote: str
    holds: bool
    text: str
    revision: int
    author: str
    created_at: str
    changed_at: str | None
    may_change: bool
    may_delete: bool
    url: str


class PromptStep(TypedDict):
    """The responses to the prompt in one step. A number is null if no response has what it is a mean of."""

    step: int
    responses: int
    rewarded: int
    mean: float | None
    spread: float | None
    low: float | None
    high: float | None
    tokens: float | None
    characters: float | None


class RolloutDatasetIn(TypedDict):
    """The choice of the sampled responses, and the dataset that gets them: an existing dataset gets a version."""

    name: str
    phase: NotRequired[Literal["train", "eval"]]
    first: NotRequired[int]
    last: NotRequired[int | None]
    shortest: NotRequired[int]
    whole: NotRequired[bool]
    form: NotRequired[Literal["", "tags", "json", "pattern"]]
    form_of: NotRequired[str]
    correct: NotRequired[float | None]
    least: NotRequired[float | None]
    part: NotRequired[str]
    protocol: NotRequired[bool]
    protocol_part: NotRequired[str]
    best: NotRequired[int]
    without: NotRequired[list[str]]


class RolloutDatasetOut(TypedDict):
    """Follow the import at `GET imports/{import_id}`; its `version` is the result."""

    import_id: int
    dataset: str


class RolloutFilters(TypedDict):
    step: NotRequired[int | None]
    phase: NotRequired[Literal["train", "eval"] | None]
    example_key: NotRequired[str | None]
    criterion: NotRequired[str | None]
    verdict: NotRequired[Literal["met", "unmet", "missing"] | None]
    excluded: NotRequired[bool | None]
    part: NotRequired[str]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    lacking: NotRequired[bool]
    by: NotRequired[str]
    between: NotRequired[str]
    apart: NotRequired[float]
    measure: NotRequired[Literal["rank", "value"]]
    text: NotRequired[str]


class RolloutPreviewIn(TypedDict):
    """`RolloutDatasetIn` without a name, and how many cases of each filter are listed."""

    name: NotRequired[str]
    phase: NotRequired[Literal["train", "eval"]]
    first: NotRequired[int]
    last: NotRequired[int | None]
    shortest: NotRequired[int]
    whole: NotRequired[bool]
    form: NotRequired[Literal["", "tags", "json", "pattern"]]
    form_of: NotRequired[str]
    correct: NotRequired[float | None]
    least: NotRequired[float | None]
    part: NotRequired[str]
    protocol: NotRequired[bool]
    protocol_part: NotRequired[str]
    best: NotRequired[int]
    without: NotRequired[list[str]]
    cases: NotRequired[int]
    of: NotRequired[str]
    after: NotRequired[int]


class RolloutPreviewOut(TypedDict):
    responses: int
    stayed: int
    prompts: int
    steps: list[FilterOut]


class SendIn(TypedDict):
    """The rollouts, the question to people, and the place where they are asked: a project, or one that is made
    of the dataset next.
    """

    kind: Literal["pairwise", "grading", "ranking", "rating", "best_worst", "trace_steps"]
    groups: NotRequired[list[GroupIn]]
    filters: NotRequired[RolloutFilters | None]
    sort: NotRequired[
        Literal["newest", "place", "reward", "-reward", "-advantage", "-spread", "part", "-part", "-apart"] | None
    ]
    most: NotRequired[int]
    project: NotRequired[int | None]
    dataset: NotRequired[str]


class SendOut(TypedDict):
    project: int | None
    dataset: int
    version: int
    new: int
    before: int
    left_out: dict[str, int]


class SentExampleOut(TypedDict):
    example: int
    key: str
    dataset: int
    rollouts: list[SentPlace]
    tasks: list[AskedOut]


class SentList(TypedDict):
    items: list[SentExampleOut]
    next: str | None


class SentPlace(TypedDict):
    step: int
    group: int
    index: int


class TurnOut(TypedDict):
    number: int
    title: str
    author: str
    kind: str
    tool: str
    call: str
    failed: bool
    tokens: int
    seconds: float | None
    reward: float | None
    size: int
    excerpt: str


class TurnTextOut(TypedDict):
    number: int
    part: int
    text: str
    next: int | None


class Rollouts(Group):
    def all(
        self,
        run_id: int,
        *,
        step: int | None = None,
        phase: Literal["train", "eval"] | None = None,
        example_key: str | None = None,
        criterion: str | None = None,
        verdict: Literal["met", "unmet", "missing"] | None = None,
        excluded: bool | None = None,
        part: str | None = None,
        low: float | None = None,
        high: float | None = None,
        lacking: bool | None = None,
        by: str | None = None,
        between: str | None = None,
        apart: float | None = None,
        measure: Literal["rank", "value"] | None = None,
        text: str | None = None,
        sort: Literal["newest", "place", "reward", "-reward", "-advantage", "-spread", "part", "-part", "-apart"]
        | None = None,
        page_size: int | None = None,
        from_step: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Sampled responses with their verdicts. Without `step`, filters look at the newest 20,000 rollouts;
        `oldest_step` then says how far back that was. `text` is searched for in all rollouts of the run that
        are indexed, and in the newest that are not; `waiting` says how many that leaves out. `previous` is a
        cursor too: it leads to the page before this one, in the same order; a search for `text` has none.
        `from_step` begins the order `newest` at a step.
        """
        return self._pages(
            dict[str, Any],
            f"/runs/{run_id}/rollouts",
            query={
                "step": step,
                "phase": phase,
                "example_key": example_key,
                "criterion": criterion,
                "verdict": verdict,
                "excluded": excluded,
                "part": part,
                "low": low,
                "high": high,
                "lacking": lacking,
                "by": by,
                "between": between,
                "apart": apart,
                "measure": measure,
                "text": text,
                "sort": sort,
                "limit": page_size,
                "from_step": from_step,
            },
        )

    def facets(self, run_id: int, *, step: int | None = None, counted: bool | None = None) -> FacetsOut:
        """The filters of rollouts. With `counted=false` the `count` of each step is null, and the answer comes
        soon however many rollouts there are.
        """
        return self._json(FacetsOut, "GET", f"/runs/{run_id}/rollouts/facets", query={"step": step, "counted": counted})

    def prompt_steps(
        self,
        run_id: int,
        *,
        example_key: str,
        phase: Literal["train", "eval"] | None = None,
        lengths: bool | None = None,
        page_size: int | None = None,
    ) -> Iterator[PromptStep]:
        """One prompt through training. Each step at which it was sampled, the newest first, with the rewards of
        its responses. The responses themselves are in `GET /runs/{run_id}/rollouts` with the same
        `example_key`. Lengths are read from the responses: with them a page has at most 100 steps; without
        them, `lengths=false`, at most 2,000.
        """
        return self._pages(
            PromptStep,
            f"/runs/{run_id}/rollouts/prompt",
            query={"example_key": example_key, "phase": phase, "lengths": lengths, "limit": page_size},
        )

    def make_dataset(self, run_id: int, body: RolloutDatasetIn) -> RolloutDatasetOut:
        """Create a dataset from a run's responses. One example per prompt, with the responses, their rewards in
        `meta.rewards`, the model and the steps. A worker gathers them: follow `GET imports/{import_id}`. Its
        `origin` says how many responses there are, how many were left out, and why.
        """
        return self._json(RolloutDatasetOut, "POST", f"/runs/{run_id}/rollouts/dataset", body=body)

    def preview_dataset(self, run_id: int, body: RolloutPreviewIn) -> RolloutPreviewOut:
        """Responses that the filters of a dataset leave out. Nothing is written. The filters work in a fixed
        order, each on what the previous one left. `cases` of each are listed with the reason.
        """
        return self._json(RolloutPreviewOut, "POST", f"/runs/{run_id}/rollouts/dataset/preview", body=body, again=True)

    def send_rollouts(self, run_id: int, body: SendIn) -> SendOut:
        """Send rollouts to annotation. The rollouts that `groups` names, or the first `most` that fit `filters`,
        become examples of `project`, whose kind must be `kind`; or of the dataset `dataset`, for a project
        that you set up with `POST /projects` next. 201 if something is new, 200 if all was there.
        """
        return self._json(SendOut, "POST", f"/runs/{run_id}/rollouts/annotate", body=body)

    def sent_rollouts(
        self, run_id: int, *, phase: Literal["train", "eval"] | None = None, step: int | None = None
    ) -> SentList:
        """The rollouts about which people are asked, and their answers. The newest 500 examples. Answers stand
        without their authors. An example without tasks waits for its project.
        """
        return self._json(SentList, "GET", f"/runs/{run_id}/rollouts/sent", query={"phase": phase, "step": step})

    def episode_turns(self, run_id: int, rollout_id: int, *, page_size: int | None = None) -> Iterator[TurnOut]:
        """The turns of an episode, without their texts. The answer has no texts, so it comes as soon for an
        episode of any size. A response in one go has no turns.
        """
        return self._pages(TurnOut, f"/runs/{run_id}/rollouts/{rollout_id}/turns", query={"limit": page_size})

    def episode_turn(self, run_id: int, rollout_id: int, number: int, *, part: int | None = None) -> TurnTextOut:
        """The text of a turn, in parts."""
        return self._json(
            TurnTextOut, "GET", f"/runs/{run_id}/rollouts/{rollout_id}/turns/{number}", query={"part": part}
        )

    def episode_search(self, run_id: int, rollout_id: int, *, q: str) -> HitList:
        """Turns of an episode that contain a text. The first 200 turns that have it in their text, in any case,
        or in the name of their tool.
        """
        return self._json(HitList, "GET", f"/runs/{run_id}/rollouts/{rollout_id}/search", query={"q": q})

    def list_notes(
        self,
        run_id: int,
        *,
        step: int | None = None,
        phase: Literal["train", "eval"] | None = None,
        page_size: int | None = None,
    ) -> Iterator[NoteOut]:
        """Notes on tokens of its responses. Notes, the newest first."""
        return self._pages(
            NoteOut, f"/runs/{run_id}/rollouts/notes", query={"step": step, "phase": phase, "limit": page_size}
        )

    def write_note(self, run_id: int, body: NoteIn, *, key: str | None = None) -> NoteOut:
        """Write a note on tokens of a response."""
        return self._json(NoteOut, "POST", f"/runs/{run_id}/rollouts/notes", body=body, key=key or new_key())

    def read_note(self, run_id: int, note_id: int) -> NoteOut:
        """One note."""
        return self._json(NoteOut, "GET", f"/runs/{run_id}/rollouts/notes/{note_id}")

    def change_note(self, run_id: int, note_id: int, body: NoteChange) -> NoteOut:
        """Change the text of your note. 409 if the note has changed since the revision that you have read; the
        error then has its `text` and `revision`.
        """
        return self._json(NoteOut, "PATCH", f"/runs/{run_id}/rollouts/notes/{note_id}", body=body)

    def delete_note(self, run_id: int, note_id: int) -> None:
        """Delete a note."""
        self._nothing("DELETE", f"/runs/{run_id}/rollouts/notes/{note_id}")

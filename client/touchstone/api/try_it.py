"""The group `try_it` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ..calling import Group


class CheckpointOut(TypedDict):
    id: int
    step: int
    model: int | None
    export: str


class CriterionIn(TypedDict):
    text: str
    points: NotRequired[float]


class PairIn(TypedDict):
    """Without `project` and `new_project` the newest project that collects pairs takes it, or a new one."""

    messages: list[TriedMessage]
    a: TriedAnswer
    b: TriedAnswer
    example: NotRequired[int | None]
    project: NotRequired[int | None]
    new_project: NotRequired[str]


class PairOut(TypedDict):
    project: int
    project_name: str
    task: int
    tasks: int
    made: bool
    url: str


class RunOffer(TypedDict):
    id: int
    name: str
    base: int
    models: list[int]
    checkpoints: list[CheckpointOut]


class Sampling(TypedDict):
    temperature: NotRequired[float | None]
    top_p: NotRequired[float | None]
    max_new_tokens: NotRequired[int | None]
    seed: NotRequired[int | None]


class ScoreIn(TypedDict):
    """By verifiers alone without `judge` and `reward_model`: then the answer comes at once."""

    text: str
    example: NotRequired[int | None]
    messages: NotRequired[list[TriedMessage]]
    criteria: NotRequired[list[CriterionIn]]
    judge: NotRequired[int | None]
    reward_model: NotRequired[int | None]
    tokens: NotRequired[int]


class ScoreOut(TypedDict):
    id: int | None
    state: Literal["queued", "running", "finished", "failed"]
    problem: str
    by: str
    score: float | None
    scale: str
    why: str
    words: str
    missing: int
    partial: bool
    criteria: list[ScoredCriterion]
    verdicts: list[int]


class ScoredCriterion(TypedDict):
    text: str
    points: float
    met: bool | None
    note: str


class TriedAnswer(TypedDict):
    model: int
    text: str
    sampling: NotRequired[Sampling]


class TriedMessage(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


class TryIt(Group):
    def send_pair(self, body: PairIn) -> PairOut:
        """Ask people to compare two answers. Creates a task for a pair. The same pair again gives the same task,
        with status 200.
        """
        return self._json(PairOut, "POST", "/try/pairs", body=body)

    def score(self, body: ScoreIn) -> ScoreOut:
        """Score a text by a rubric, a judge or a reward model. 202: a worker asks the judge or the reward model;
        ask for it under its number.
        """
        return self._json(ScoreOut, "POST", "/try/scores", body=body)

    def get_score(self, score_id: int) -> ScoreOut:
        """A score that a worker works out."""
        return self._json(ScoreOut, "GET", f"/try/scores/{score_id}")

    def run_offer(self, run_id: int) -> RunOffer:
        """Models of a run that can be tried. The kept checkpoints of the run; one without `model` is exported
        first (POST to `export`), by a job of the cluster.
        """
        return self._json(RunOffer, "GET", f"/try/runs/{run_id}")

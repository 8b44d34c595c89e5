"""The group `claims` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, new_key
from .shared import DatasetIn


class ClaimMakingOut(TypedDict):
    job: int
    state: str
    phase: str
    steps: ClaimStepsOut | None
    problem: str


class ClaimMethodList(TypedDict):
    items: list[ClaimMethodOut]
    next: str | None


class ClaimMethodOut(TypedDict):
    name: str
    title: str
    what: str
    claim: str
    paper: str
    link: str
    seconds: float | None
    plans: list[str]


class ClaimOut(TypedDict):
    claim: str
    verdict: str
    verdict_uncorrected: str
    p_holm: float
    parts: list[ClaimPartOut]


class ClaimPartOut(TypedDict):
    part: str
    measure: str
    better: str
    worse: str | None
    margin: float
    verdict: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    missing: int


class ClaimStandingOut(TypedDict):
    id: int
    plan: str
    title: str
    state: Literal["waiting", "launched", "refused"]
    problem: str
    runs: int
    finished: int
    created_at: str
    making: ClaimMakingOut | None
    rule: str
    changed: bool
    claims: list[ClaimOut]
    table: list[ClaimStudyRunOut]


class ClaimStepsOut(TypedDict):
    done: int
    total: int
    seconds_left: float | None


class ClaimStudyIn(TypedDict):
    plan: str
    dataset: NotRequired[int | str | DatasetIn | None]
    model: NotRequired[str | None]
    seeds: NotRequired[int]
    config: NotRequired[dict[str, Any] | None]


class ClaimStudyOut(TypedDict):
    id: int
    plan: str
    title: str
    state: Literal["waiting", "launched", "refused"]
    problem: str
    runs: int
    finished: int
    created_at: str


class ClaimStudyRunOut(TypedDict):
    run: int | None
    arm: str
    seed: int
    state: str
    why: str
    measures: dict[str, float | None]


class Claims(Group):
    def methods(self) -> ClaimMethodList:
        """Methods, their claims, and what they cost here."""
        return self._json(ClaimMethodList, "GET", "/claims/methods")

    def studies(self, *, page_size: int | None = None) -> Iterator[ClaimStudyOut]:
        """Studies of claims, newest first."""
        return self._pages(ClaimStudyOut, "/claims", query={"limit": page_size})

    def launch(self, body: ClaimStudyIn, *, key: str | None = None) -> ClaimStandingOut:
        """Launch every arm of a claim with several seeds. All runs or none: 422 with every field that is wrong.
        Without `dataset` and `model`, a job makes the examples of the plan's constructed task and teaches a
        small model for it, once for the workspace; the runs are launched when both are there. `state` and
        `making` show the progress.
        """
        return self._json(ClaimStandingOut, "POST", "/claims", body=body, key=key or new_key())

    def study(self, study_id: int) -> ClaimStandingOut:
        """The state of a study, and its verdict."""
        return self._json(ClaimStandingOut, "GET", f"/claims/{study_id}")

    def again(self, study_id: int) -> ClaimStandingOut:
        """Try a failed study again. Retries a study whose task could not be made, or whose runs were refused.
        Any other study stays as it is.
        """
        return self._json(ClaimStandingOut, "POST", f"/claims/{study_id}/again")

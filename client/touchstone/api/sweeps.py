"""The group `sweeps` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group, new_key
from .shared import DatasetIn, LimitsIn


class SweepAxisIn(TypedDict):
    """A key of the config: its `values`, or all numbers from `low` to `high`."""

    path: str
    values: NotRequired[list[bool | int | float | str | None] | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    scale: NotRequired[str]
    points: NotRequired[int | None]


class SweepAxisOut(TypedDict):
    path: str
    values: list[bool | int | float | str | None]
    low: float | None
    high: float | None
    scale: str
    points: int | None


class SweepContourOut(TypedDict):
    x: SweepContourSide
    y: SweepContourSide
    places: list[SweepContourPlace]
    surface: list[list[float | None]]
    undefined: str


class SweepContourPlace(TypedDict):
    x: float
    y: float
    value: float
    trials: list[int]


class SweepContourSide(TypedDict):
    path: str
    low: float
    high: float
    log: bool


class SweepEstimateOut(TypedDict):
    value: float | None
    low: float | None
    high: float | None
    n: int
    missing: int


class SweepIn(TypedDict):
    """One of three: `recipe` with `config` and `dataset`; `run`; or `sweep`. With `run` or `sweep`, absent
    fields, also the experiment, are those of the run or the sweep, and `config` is laid over its own.
    """

    run: NotRequired[int | None]
    sweep: NotRequired[int | None]
    recipe: NotRequired[str | None]
    config: NotRequired[dict[str, Any]]
    dataset: NotRequired[int | str | DatasetIn | None]
    axes: NotRequired[list[SweepAxisIn]]
    method: NotRequired[str]
    metric: NotRequired[str]
    better: NotRequired[str]
    seeds: NotRequired[int]
    trials: NotRequired[int]
    at_once: NotRequired[int]
    seed: NotRequired[int]
    first_rung: NotRequired[int]
    factor: NotRequired[int]
    together: NotRequired[bool]
    limits: NotRequired[LimitsIn]
    name: NotRequired[str]
    experiment: NotRequired[str]


class SweepOut(TypedDict):
    id: int
    name: str
    state: Literal["running", "stopping", "stopped", "finished", "failed"]
    state_reason: str
    experiment: str
    recipe: str
    run: int | None
    axes: list[SweepAxisOut]
    method: str
    metric: str
    better: str
    seeds: int
    trials: int
    launched: int
    over: int
    at_once: int
    seed: int
    first_rung: int
    factor: int
    together: bool
    limits: LimitsIn
    created_at: str
    ended_at: str | None


class SweepRunRefused(TypedDict):
    run: int
    reason: str


class SweepRunsResumedOut(TypedDict):
    runs: list[int]
    refused: list[SweepRunRefused]


class SweepStandingOut(TypedDict):
    id: int
    name: str
    state: Literal["running", "stopping", "stopped", "finished", "failed"]
    state_reason: str
    experiment: str
    recipe: str
    run: int | None
    axes: list[SweepAxisOut]
    method: str
    metric: str
    better: str
    seeds: int
    trials: int
    launched: int
    over: int
    at_once: int
    seed: int
    first_rung: int
    factor: int
    together: bool
    limits: LimitsIn
    created_at: str
    ended_at: str | None
    best: SweepTrialOut | None


class SweepTrialOut(TypedDict):
    number: int
    state: Literal["running", "finished", "pruned", "lost", "refused"]
    values: dict[str, bool | int | float | str | None]
    estimate: SweepEstimateOut
    stopped_at: int | None
    value_there: float | None
    problem: str
    runs: list[SweepTrialRunOut]


class SweepTrialRunOut(TypedDict):
    run: int
    seed: int
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
    value: float | None


class SweepTrialsIn(TypedDict):
    trials: int


class Sweeps(Group):
    def all(self, *, page_size: int | None = None) -> Iterator[SweepOut]:
        """Sweeps, newest first."""
        return self._pages(SweepOut, "/sweeps", query={"limit": page_size})

    def launch(self, body: SweepIn, *, key: str | None = None) -> SweepStandingOut:
        """Launch a sweep. 422 with every wrong field; then nothing is launched. Workers launch the trials, some
        at a time.
        """
        return self._json(SweepStandingOut, "POST", "/sweeps", body=body, key=key or new_key())

    def get(self, sweep_id: int) -> SweepStandingOut:
        """The state of a sweep, and its best trial."""
        return self._json(SweepStandingOut, "GET", f"/sweeps/{sweep_id}")

    def trials(self, sweep_id: int, *, page_size: int | None = None) -> Iterator[SweepTrialOut]:
        """Trials of a sweep, in their order."""
        return self._pages(SweepTrialOut, f"/sweeps/{sweep_id}/trials", query={"limit": page_size})

    def add_trials(self, sweep_id: int, body: SweepTrialsIn) -> SweepStandingOut:
        """Add trials. Works for a sweep that is over, too. 409 for a grid, which is complete."""
        return self._json(SweepStandingOut, "POST", f"/sweeps/{sweep_id}/trials", body=body)

    def contour_of(self, sweep_id: int, *, x: str | None = None, y: str | None = None) -> SweepContourOut:
        """The metric over two keys of a sweep. `x` and `y` are keys of the sweep whose values are numbers;
        without them, the first two are taken. 409 for a sweep without two such keys.
        """
        return self._json(SweepContourOut, "GET", f"/sweeps/{sweep_id}/contour", query={"x": x, "y": y})

    def stop(self, sweep_id: int) -> SweepStandingOut:
        """Stop a sweep and its runs. Harmless if it is over. Its runs give up their present steps and save, each
        with a checkpoint.
        """
        return self._json(SweepStandingOut, "POST", f"/sweeps/{sweep_id}/stop", again=True)

    def resume(self, sweep_id: int) -> SweepStandingOut:
        """Continue a stopped sweep. Launches the trials that are left. Stopped runs stay stopped; each can be
        resumed by itself.
        """
        return self._json(SweepStandingOut, "POST", f"/sweeps/{sweep_id}/resume")

    def resume_failed(self, sweep_id: int) -> SweepRunsResumedOut:
        """Resume the failed runs of a sweep. Each continues from its last checkpoint, or begins again. `refused`
        has the others with the reason: a limit that is used up, a config that is no longer valid, a trial
        that was stopped early. A sweep that has finished is under way again. A second request finds no failed
        run. 409 while the sweep is stopping, or if it ended before all of its trials were launched.
        """
        return self._json(SweepRunsResumedOut, "POST", f"/sweeps/{sweep_id}/failed/resume")

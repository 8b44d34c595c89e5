"""The server's answers as types. A test of the server compares them with its OpenAPI document."""

from typing import Any, TypedDict


class Progress(TypedDict):
    step: int
    steps_total: int
    fraction: float
    phase: str
    phase_done: int
    phase_total: int
    eta_s: float | None
    learner_device: str
    sampler_device: str


class Named(TypedDict):
    id: int
    name: str


class RunDataset(Named):
    version_id: int
    version: int


class EarlyStop(TypedDict):
    metric: str
    patience: int
    better: str | None
    min_delta: float


class Run(TypedDict):
    id: int
    name: str
    number: int
    experiment: Named
    recipe: str
    state: str
    state_reason: str
    progress: Progress
    config: dict[str, Any]
    summary: dict[str, float]
    result: dict[str, Any] | None
    dataset: RunDataset | None
    model: Named | None
    outputs: list[dict[str, Any]]
    attempt: int
    under_way_s: float | None
    time_limit_s: float | None
    token_limit: int | None
    judge_token_limit: int | None
    judge_money_limit: float | None
    stop_early: EarlyStop | None
    not_before: str | None
    retries: int
    last_seq: int
    forked_from: int | None
    start_step: int
    created_at: str
    started_at: str | None
    first_metric_at: str | None
    ended_at: str | None


class Point(TypedDict):
    step: int
    value: float | None
    not_finite: str
    time: str
    histogram: dict[str, Any] | None


class CostAmount(TypedDict):
    value: float | None
    unknown: int


class Cost(TypedDict):
    kind: str
    id: int
    name: str
    url: str
    hours: CostAmount
    gpu_hours: CostAmount
    tokens: CostAmount
    money: CostAmount
    minutes: CostAmount


class Artifact(TypedDict):
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

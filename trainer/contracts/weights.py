"""What a job that needs weights hears and tells: generating, scoring, measuring, embedding, judging, exporting (`python -m trainer weights-job`)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .base import Record
from .model_folder import ModelSource

MAX_ITEMS_PER_POST = 500
Count = Annotated[int, Field(ge=0, lt=2**31)]


class WeightsAssignment(Record):
    """GET of the job's address. `models` by role; `done` items, in their order, have results already, in `acked` batches.

    `items_url` gives the items as JSON Lines, `?after=N` those behind the first N. `folder` is where the job may write.

    With a `store_url`, job and server share no disk: `folder` is empty, models are fetched and outputs sent there.
    """

    job_id: int
    kind: Literal["generate", "score", "logprobs", "embed", "export", "judge"]
    params: dict[str, Any]
    models: dict[str, ModelSource] = Field(default_factory=dict)
    attempt: int
    total: Count
    done: Count
    acked: Count
    items_url: str
    folder: str
    store_url: str = ""


class WeightsLine(Record):
    level: Literal["info", "warning", "error"] = "info"
    message: str = Field(max_length=20_000)


class WeightsUse(Record):
    """What the process has taken so far: seconds of processors, the most memory it held at once, the same of its GPU.

    `device` is empty until weights are loaded; `gpu_bytes` is None where none is used.
    """

    device: str = Field(default="", max_length=120)
    cpu_seconds: float = Field(ge=0)
    memory_bytes: int = Field(ge=0)
    gpu_bytes: int | None = Field(default=None, ge=0)
    processors: int = Field(ge=1)


class WeightsBatch(Record):
    """POST of the job's address. `number` counts batches with results from 1; 0 is a sign of life that carries none.

    The results belong to the items that follow those of earlier batches. A batch that comes again changes nothing.
    """

    attempt: int = Field(ge=1)
    number: Count = 0
    results: tuple[dict[str, Any], ...] = Field(default=(), max_length=MAX_ITEMS_PER_POST)
    phase: str = Field(default="", max_length=40)
    total: Count | None = None
    lines: tuple[WeightsLine, ...] = Field(default=(), max_length=100)
    used: WeightsUse | None = None
    state: Literal["running", "finished", "failed", "stopped"] = "running"
    reason: str = Field(default="", max_length=5000)
    outcome: dict[str, Any] = Field(default_factory=dict)


class WeightsReply(Record):
    """`acked`: the last batch that is stored. `command`: what the server wants of the job."""

    acked: Count
    command: Literal["continue", "stop", "abandon"] = "continue"

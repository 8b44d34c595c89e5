"""The messages between the server and a job that needs weights: to generate, score, measure, embed, judge, export or make the task of
a claim (`python -m trainer weights-job`)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .base import Record
from .model_folder import ModelSource

MAX_ITEMS_PER_POST = 500
Count = Annotated[int, Field(ge=0, lt=2**31)]


class WeightsAssignment(Record):
    """GET of the job's address. `models` are listed by role. The first `done` items have results already, in `acked` batches.

    `items_url` gives the items as JSON Lines; with `?after=N` it leaves out the first N. The job may write to `folder`.

    With a `store_url`, job and server share no disk: `folder` is empty; the job fetches models from the store and sends its outputs there.
    """

    job_id: int
    kind: Literal["generate", "score", "logprobs", "embed", "export", "judge", "task"]
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
    """The resources that a process has used so far: seconds of processors, its largest memory, and its largest memory on the GPU.

    `device` is empty until weights are loaded; `gpu_bytes` is None if no GPU is used.
    """

    device: str = Field(default="", max_length=120)
    cpu_seconds: float = Field(ge=0)
    memory_bytes: int = Field(ge=0)
    gpu_bytes: int | None = Field(default=None, ge=0)
    processors: int = Field(ge=1)


class WeightsSteps(Record):
    """The progress of a job in work without items, such as teaching a model. `seconds_left` is None until a pace is known."""

    done: Count
    total: Count
    seconds_left: float | None = Field(default=None, ge=0)


class WeightsBatch(Record):
    """POST of the job's address. `number` counts batches with results from 1; a batch with the number 0 has none and is a heartbeat.

    The results belong to the items after those of earlier batches. A batch that is sent again changes nothing.
    """

    attempt: int = Field(ge=1)
    number: Count = 0
    results: tuple[dict[str, Any], ...] = Field(default=(), max_length=MAX_ITEMS_PER_POST)
    phase: str = Field(default="", max_length=40)
    total: Count | None = None
    lines: tuple[WeightsLine, ...] = Field(default=(), max_length=100)
    used: WeightsUse | None = None
    steps: WeightsSteps | None = None
    state: Literal["running", "finished", "failed", "stopped"] = "running"
    reason: str = Field(default="", max_length=5000)
    outcome: dict[str, Any] = Field(default_factory=dict)


class WeightsReply(Record):
    """`acked`: the last batch that is stored. `command`: what the job shall do."""

    acked: Count
    command: Literal["continue", "stop", "abandon"] = "continue"

"""The kinds of jobs and their items. `generate` and `score` are here; apps above register theirs when they are ready."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainer.config.fields import Section, knob
from trainer.config.sections.sampler import Sampler
from trainer.contracts import Example, ModelSource
from trainer.contracts.storing import Links, Upload
from trainer.memory import jobs as memory
from webapp.datasets.models import VersionMember
from webapp.inference import queries as registry
from webapp.inference.folders.shapes import shape_of

from .models import WeightsJob

Items = Iterator[str]
Results = Sequence[dict[str, Any]]
ROWS_PER_READ = 500
READ_RESPONSES = (WeightsJob.Kind.SCORE, WeightsJob.Kind.LOGPROBS)


class Resources(Section):
    """The resources that Ray sets aside for a job that loads weights: it waits until a machine of the cluster has as much free."""

    cpus: float = knob(0.0, "Processors to reserve; 0 reserves none", ge=0, le=1024)
    gpus: float = knob(0.0, "GPUs; a job sees only the GPUs that it asks for", ge=0, le=64)
    memory_gb: float = knob(0.0, "Memory; 0 sets none aside", unit="GB", ge=0, le=65_536)


class Generation(Section):
    """The answers of a model to the prompts of a dataset version."""

    samples: int = knob(1, "Responses to each prompt", ge=1, le=64)
    max_new_tokens: int = knob(256, "Longest response", unit="tokens", ge=1, le=32_768)
    temperature: float = knob(0.0, "0 always takes the most likely token", ge=0, le=5)
    top_p: float = knob(1.0, "Nucleus: sample from the smallest set of tokens that has this probability", gt=0, le=1)
    stop: list[str] = knob([], "Texts that end a response", max_length=8, advanced=True)
    seed: int = knob(0, "Decides what is drawn", ge=0, lt=2**31)
    split: str = knob("heldout", "Split of the dataset: train, heldout; empty: all", max_length=10)
    max_prompts: int | None = knob(None, "Only the first prompts; empty: all", unit="prompts", ge=1)
    sampler: Sampler = Sampler()
    resources: Resources = Resources()


class Scoring(Section):
    """The scores of a reward model for the responses of a dataset version."""

    split: str = knob("heldout", "Split of the dataset: train, heldout; empty: all", max_length=10)
    max_prompts: int | None = knob(None, "Only the first prompts; empty: all", unit="prompts", ge=1)
    resources: Resources = Resources()


class LogProbs(Scoring):
    """The likelihood of the responses of a dataset version under a model."""

    per_token: bool = knob(False, "Also the log-probability of each token")


class Embedding(Scoring):
    """The texts of a dataset version that become vectors."""

    texts: Literal["prompts", "responses"] = knob("responses", "Each prompt's last message, or its responses")


@dataclass(frozen=True)
class Kind:
    """`items(job, after)`: JSON texts in a fixed order, after the first `after`. `brief`: the params for the process.

    `keep(job, results)` is called once for each batch, in the transaction that stores it: it returns what is stored as the results, and the
    job's outcome so far. `finish` is called once, in the transaction that ends the job, with the job's last message; it may raise Invalid,
    and then the job fails with those words. `artifacts` gives the addresses of a folder in the artifact store that the job reads beside its
    models, `upload` those it may send files to; None: not this one. `memory`: the forecast in bytes of what its process holds; None, or
    ShapeUnknown is raised: not known.
    """

    models: Callable[[WeightsJob], dict[str, ModelSource]]
    items: Callable[[WeightsJob, int], Items]
    finish: Callable[[WeightsJob, dict[str, Any]], dict[str, Any]] = lambda job, outcome: outcome
    folder: Callable[[WeightsJob], str] = lambda job: ""
    brief: Callable[[WeightsJob], dict[str, Any]] = lambda job: job.params
    keep: Callable[[WeightsJob, Results], tuple[Results, dict[str, Any]]] = lambda job, results: (results, job.outcome)
    artifacts: Callable[[WeightsJob, str], Links | None] = lambda job, name: None
    upload: Callable[[WeightsJob, Upload], Links | None] = lambda job, asked: None
    memory: Callable[[WeightsJob], int | None] = lambda job: None


def _model(job: WeightsJob) -> dict[str, ModelSource]:
    return {"model": registry.source(job.model)} if job.model else {}


def reads(job: WeightsJob) -> int | None:
    """The memory of a job whose model reads texts."""
    return memory.reading(shape_of(job.model)) if job.model else None


def _writes(job: WeightsJob) -> int | None:
    asked = Generation.model_validate(job.params)
    return memory.generating(shape_of(job.model), asked.sampler, asked.max_new_tokens) if job.model else None


def prompts(job: WeightsJob, after: int = 0) -> Items:
    """`{"key", "messages"}` of each prompt."""
    for example in examples(job, after):
        messages = [message.model_dump() for message in example.prompt]
        yield json.dumps({"key": example.key, "messages": messages}, ensure_ascii=False)


def responses(job: WeightsJob, after: int = 0) -> Items:
    """`{"key", "messages", "responses": [{"id", "text"}]}` of each prompt."""
    for example in examples(job, after):
        given = [{"id": response.id, "text": response.text} for response in example.responses]
        messages = [message.model_dump() for message in example.prompt]
        yield json.dumps({"key": example.key, "messages": messages, "responses": given}, ensure_ascii=False)


def texts(job: WeightsJob, after: int = 0) -> Items:
    """`{"key", "texts": [{"id", "text"}]}` of each prompt; the prompt's own text has an empty id."""
    for example in examples(job, after):
        if job.params["texts"] == "prompts":
            given = [{"id": "", "text": example.prompt[-1].content}]
        else:
            given = [{"id": response.id, "text": response.text} for response in example.responses]
        yield json.dumps({"key": example.key, "texts": given}, ensure_ascii=False)


def examples(job: WeightsJob, after: int) -> Iterator[Example]:
    """The chosen prompts of the version in its order, read in pieces: it may be larger than memory."""
    if job.version is None:
        return
    rows = VersionMember.objects.filter(version=job.version).order_by("position")
    if split := job.params.get("split"):
        rows = rows.filter(example__split=split)
    if job.kind in READ_RESPONSES or job.params.get("texts") == "responses":
        rows = rows.filter(example__response_count__gt=0)
    most = job.params.get("max_prompts")
    at = after
    while most is None or at < most:
        upto = at + ROWS_PER_READ if most is None else min(most, at + ROWS_PER_READ)
        texts = list(rows.values_list("example__canonical", flat=True)[at:upto])
        yield from map(Example.model_validate_json, texts)
        if len(texts) < upto - at:
            return
        at = upto


KINDS: dict[str, Kind] = {
    WeightsJob.Kind.GENERATE: Kind(_model, prompts, memory=_writes),
    WeightsJob.Kind.SCORE: Kind(_model, responses, memory=reads),
    WeightsJob.Kind.LOGPROBS: Kind(_model, responses, memory=reads),
    WeightsJob.Kind.EMBED: Kind(_model, texts),
}

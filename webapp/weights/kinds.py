"""What each kind of job works on. `generate` and `score` are here; apps above register theirs when they are ready."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trainer.config.fields import Section, knob
from trainer.config.sampler import Sampler
from trainer.contracts import Example, ModelSource
from webapp.datasets.models import VersionMember
from webapp.inference import queries as registry

from .models import WeightsJob

Items = Iterator[str]
ROWS_PER_READ = 500


class Generation(Section):
    """How a model answers the prompts of a dataset version."""

    samples: int = knob(1, "Responses to each prompt", ge=1, le=64)
    max_new_tokens: int = knob(256, "Longest response", unit="tokens", ge=1, le=32_768)
    temperature: float = knob(0.0, "0 always takes the likeliest token", ge=0, le=5)
    top_p: float = knob(1.0, "Nucleus: the likeliest tokens that sum to this", gt=0, le=1)
    stop: list[str] = knob([], "Texts that end a response", max_length=8, advanced=True)
    seed: int = knob(0, "Decides what is drawn", ge=0, lt=2**31)
    split: str = knob("heldout", "Of the dataset: train, heldout; empty: all", max_length=10)
    max_prompts: int | None = knob(None, "Only the first prompts; empty: all", unit="prompts", ge=1)
    sampler: Sampler = Sampler()


class Scoring(Section):
    """How a reward model scores the responses of a dataset version."""

    split: str = knob("heldout", "Of the dataset: train, heldout; empty: all", max_length=10)
    max_prompts: int | None = knob(None, "Only the first prompts; empty: all", unit="prompts", ge=1)


@dataclass(frozen=True)
class Kind:
    """`items(job, after)`: JSON texts in a fixed order, behind the first `after`. `finish` is called once, in the transaction
    that ends the job, with what the job tells in the end; it may raise Invalid, and then the job fails with those words."""

    models: Callable[[WeightsJob], dict[str, ModelSource]]
    items: Callable[[WeightsJob, int], Items]
    finish: Callable[[WeightsJob, dict[str, Any]], dict[str, Any]] = lambda job, outcome: outcome
    folder: Callable[[WeightsJob], str] = lambda job: ""


def _model(job: WeightsJob) -> dict[str, ModelSource]:
    return {"model": registry.source(job.model)} if job.model else {}


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


def examples(job: WeightsJob, after: int) -> Iterator[Example]:
    """The chosen prompts of the version in its order, read in pieces: it may be larger than memory."""
    if job.version is None:
        return
    rows = VersionMember.objects.filter(version=job.version).order_by("position")
    if split := job.params.get("split"):
        rows = rows.filter(example__split=split)
    if job.kind == WeightsJob.Kind.SCORE:
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
    WeightsJob.Kind.GENERATE: Kind(_model, prompts),
    WeightsJob.Kind.SCORE: Kind(_model, responses),
}

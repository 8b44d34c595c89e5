"""A reward model scores responses."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from trainer.contracts import Message
from trainer.inference.adapters import whole_directory
from trainer.inference.reward_models import RewardModel

from .client import JobClient

_PER_POST = 20


def work(client: JobClient) -> Mapping[str, Any]:
    """One result per item: `{"key", "scores": {response id: score}, "problems": {response id: why there is none}}`."""
    kept = Path(client.assignment.folder) / "merged"
    model = RewardModel(whole_directory(client.assignment.models["model"], kept))
    client.phase = "scoring"
    found = scored(model, client.items())
    while together := list(islice(found, _PER_POST)):
        client.store(together)
    return {}


def scored(model: RewardModel, items: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        prompt = [Message(**message) for message in item["messages"]]
        ids = [response["id"] for response in item["responses"]]
        values = model.scores(prompt, [response["text"] for response in item["responses"]])
        pairs = list(zip(ids, values, strict=True))
        yield {
            "key": item["key"],
            "scores": {name: value for name, value in pairs if not isinstance(value, str)},
            "problems": {name: value for name, value in pairs if isinstance(value, str)},
        }

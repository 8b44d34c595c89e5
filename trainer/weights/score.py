"""A reward model scores responses."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from trainer.contracts import Message
from trainer.inference.adapters import whole_directory
from trainer.inference.models import best_device, load_scalar, load_tokenizer
from trainer.inference.turns import TurnsUnfit, encode_conversation

from .client import JobClient

_SCALE = "reward.json"
_PER_POST = 20
Text = tuple[int, ...]


class RewardModel:
    """Scores from which the offset that training found is taken off, so that those of different runs compare."""

    def __init__(self, folder: Path) -> None:
        from trainer.loops.scalar import ScalarPass

        self._tokenizer = load_tokenizer(folder)
        model = load_scalar(folder).to(best_device()).eval().requires_grad_(False)
        self._padding, self._longest = model.config.pad_token_id, int(model.config.max_position_embeddings)
        self._pass = ScalarPass(model)
        scale = folder / _SCALE
        self._offset = float(json.loads(scale.read_text())["offset"]) if scale.is_file() else 0.0

    def score(self, prompt: Sequence[Message], texts: Sequence[str]) -> list[float | str]:
        """The score of each answer to the prompt, or why it has none. What the answers share is computed once."""
        import torch

        read = [self._read(prompt, text) for text in texts]
        tokens = [each for each in read if not isinstance(each, str)]
        with torch.no_grad():
            scores = iter(self._pass(tokens).tolist() if tokens else [])
        return [each if isinstance(each, str) else next(scores) - self._offset for each in read]

    def _read(self, prompt: Sequence[Message], text: str) -> Text | str:
        try:
            tokens = encode_conversation(self._tokenizer, [*prompt, Message(role="assistant", content=text)])
        except TurnsUnfit as error:
            return str(error)
        end = len(tokens)
        while end > 1 and tokens[end - 1] == self._padding:  # transformers reads the last token that is not padding
            end -= 1
        if end > self._longest:
            return f"has {end:,} tokens and the model sees {self._longest:,}"
        return tuple(tokens[:end])


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
        values = model.score(prompt, [response["text"] for response in item["responses"]])
        pairs = list(zip(ids, values, strict=True))
        yield {
            "key": item["key"],
            "scores": {name: value for name, value in pairs if not isinstance(value, str)},
            "problems": {name: value for name, value in pairs if isinstance(value, str)},
        }

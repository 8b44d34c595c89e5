"""A trained reward model that scores: one number for a conversation that ends with a response."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.contracts import Message

from .attention import use_grouped_attention
from .models import ModelInvalid, best_device, check_tokenizer, load_scalar, load_tokenizer
from .prefix import PrefixTree
from .turns import TurnsUnfit, encode_conversation

SCALE = "reward.json"
"""The file in the folder of a reward model with `offset`, which is subtracted from its scores, their standard deviation `scale`, and
`texts`.
"""
AT_ONCE = 4096
"""Tokens of one pass; its memory grows with them."""


class ScalarPass(nn.Module):
    """Turns texts as tokens into their scores [B], shared prefixes once: the answers to one prompt share it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, texts: Sequence[Sequence[int]]) -> Tensor:
        tree = PrefixTree.of(texts).to(self.model.device)
        hidden_ND = self.model.model(**tree.model_inputs(), use_cache=False).last_hidden_state[0]
        last_B = torch.stack([path[-1] for path in tree.paths])
        score_B: Tensor = self.model.score(hidden_ND[last_B])[:, 0]
        return score_B.to(torch.promote_types(score_B.dtype, torch.float32))


def up_to_padding(tokens: Sequence[int], padding: int | None) -> tuple[int, ...]:
    """A text up to where its score is read: transformers takes the last token that is not padding."""
    end = len(tokens)
    while end > 1 and tokens[end - 1] == padding:
        end -= 1
    return tuple(tokens[:end])


class RewardModel:
    """The model of a folder that stock `AutoModelForSequenceClassification` loads with one label, with its own tokenizer.

    If training has written the offset of its scores (`reward.json`), it is subtracted, so that scores of different runs
    compare. Raises ModelInvalid if the folder holds no such model, one whose head was never trained, or another model's tokenizer.
    """

    def __init__(self, folder: Path) -> None:
        self.key = str(folder)
        self._tokenizer = load_tokenizer(folder)
        model = load_scalar(folder)
        if not _has_head(folder):
            raise ModelInvalid(f"{folder}: a language model without a head that scores; name a reward model")
        check_tokenizer(self._tokenizer, model, folder)
        use_grouped_attention(model)
        self._offset = _offset(folder)
        self._padding = model.config.pad_token_id
        self._turn = asyncio.Lock()
        self._longest = int(model.config.max_position_embeddings)
        self._pass = ScalarPass(model.eval().requires_grad_(False).to(best_device()))

    async def score(self, conversations: Sequence[Sequence[tuple[str, str]]], max_tokens: int) -> list[float | str]:
        """Scores of conversations, in a thread, so that judges can be asked meanwhile; one pass after the other, with shared beginnings
        computed once.
        """
        texts = [self._encoded(_messages(conversation), max_tokens) for conversation in conversations]
        scores: list[float] = []
        async with self._turn:
            for together in _packs(_known(texts)):
                scores += await asyncio.to_thread(self._scored, together)
        return _in_place(texts, scores)

    def scores(self, prompt: Sequence[Message], answers: Sequence[str]) -> list[float | str]:
        """The score of each answer to the prompt, or why it has none."""
        texts = [
            self._encoded([*prompt, Message(role="assistant", content=answer)], self._longest) for answer in answers
        ]
        return _in_place(texts, [score for together in _packs(_known(texts)) for score in self._scored(together)])

    @torch.inference_mode()
    def _scored(self, texts: Sequence[tuple[int, ...]]) -> list[float]:
        return [score - self._offset for score in self._pass(texts).cpu().tolist()]

    def _encoded(self, messages: Sequence[Message], most: int) -> tuple[int, ...] | str:
        """The tokens, or why there is no score."""
        most = min(most, self._longest)
        try:
            tokens = up_to_padding(encode_conversation(self._tokenizer, messages), self._padding)
        except TurnsUnfit as error:
            return str(error)
        return tokens if len(tokens) <= most else f"{len(tokens):,} tokens; the reward model reads {most:,}"


def _messages(conversation: Sequence[tuple[str, str]]) -> list[Message]:
    return [Message.model_validate({"role": role, "content": content}) for role, content in conversation]


def _known(texts: Sequence[tuple[int, ...] | str]) -> list[tuple[int, ...]]:
    return [text for text in texts if not isinstance(text, str)]


def _in_place(texts: Sequence[tuple[int, ...] | str], scores: Sequence[float]) -> list[float | str]:
    given = iter(scores)
    return [text if isinstance(text, str) else next(given) for text in texts]


def _offset(folder: Path) -> float:
    """The offset of the scores. Raises ModelInvalid if the file cannot be read."""
    file = folder / SCALE
    try:
        return float(json.loads(file.read_text())["offset"]) if file.is_file() else 0.0
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelInvalid(f"{file}: the offset of the scores cannot be read ({error})") from error


def _has_head(folder: Path) -> bool:
    """Whether the weights contain a score head: without one, `load_scalar` would draw a new head."""
    from safetensors import safe_open

    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as weights:
            if any(name.startswith("score.") for name in weights.keys()):  # noqa: SIM118 - a file, not a mapping
                return True
    return False


def _packs(texts: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """The texts in their order, cut into passes whose tokens are few enough."""
    packs: list[list[tuple[int, ...]]] = []
    size = 0
    for text in texts:
        if not packs or size + len(text) > AT_ONCE:
            packs.append([])
            size = 0
        packs[-1].append(text)
        size += len(text)
    return packs

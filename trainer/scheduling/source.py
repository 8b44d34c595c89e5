"""Which group comes next: the order of the data, read by domain where quotas ask for it."""

from collections.abc import Callable
from typing import Any

_FAR = 1_000_000


class Source:
    """Groups 0, 1, 2, ... of an endless order. `domain_of(n)` tells the n-th group's domain; it must not change."""

    def __init__(self, domain_of: Callable[[int], str] = lambda number: "") -> None:
        self._domain_of = domain_of
        self._next: dict[str, int] = {}
        self._position = 0

    def take(self, domain: str | None) -> tuple[int, str]:
        """The next group not yet taken, of that domain if one is named: (number, domain).

        A source is read either by domain or in order, never both. Raises ValueError for a domain that does not come.
        """
        if domain is None:
            number, self._position = self._position, self._position + 1
            return number, self._domain_of(number)
        start = self._next.get(domain, 0)
        for number in range(start, start + _FAR):
            if self._domain_of(number) == domain:
                self._next[domain] = number + 1
                return number, domain
        raise ValueError(f"no prompt of domain {domain!r} among the next {_FAR:,}; take it out of the quotas")

    def state_dict(self) -> dict[str, Any]:
        return {"position": self._position, "next": dict(self._next)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._position, self._next = state["position"], dict(state["next"])

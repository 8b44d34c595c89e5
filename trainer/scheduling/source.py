"""Chooses the next group: by the order of the data, read by domain if quotas ask for it."""

from collections.abc import Callable
from typing import Any, NamedTuple

_FAR = 1_000_000


class Ticket(NamedTuple):
    """A group that is admitted. `size` is the number of its responses; None stands for that of the rules."""

    number: int
    domain: str
    size: int | None


class GroupSource:
    """Groups 0, 1, 2, ... of an endless order.

    `domain_of(n)` gives the n-th group's domain and must not change. `size_of(n)` is asked once for each group, when the group is taken;
    the group keeps this size.
    """

    def __init__(
        self,
        domain_of: Callable[[int], str] = lambda number: "",
        size_of: Callable[[int], int | None] = lambda number: None,
    ) -> None:
        self._domain_of, self._size_of = domain_of, size_of
        self._next: dict[str, int] = {}
        self._position = 0

    def take(self, domain: str | None) -> Ticket:
        """The next group not yet taken, of `domain` if it is given.

        A source is read either by domain or in order, never both. Raises ValueError for a domain that does not come.
        """
        if domain is None:
            number, self._position = self._position, self._position + 1
            return Ticket(number, self._domain_of(number), self._size_of(number))
        start = self._next.get(domain, 0)
        for number in range(start, start + _FAR):
            if self._domain_of(number) == domain:
                self._next[domain] = number + 1
                return Ticket(number, domain, self._size_of(number))
        raise ValueError(f"no prompt of domain {domain!r} among the next {_FAR:,}; take it out of the quotas")

    def state_dict(self) -> dict[str, Any]:
        return {"position": self._position, "next": dict(self._next)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._position, self._next = state["position"], dict(state["next"])

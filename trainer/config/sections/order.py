"""The prompts that a run draws, and their order."""

from collections.abc import Collection, Iterator, Mapping

from ..errors import FieldProblem
from ..fields import Section, knob

_ALONE = {
    "data": "in the order of the data",
    "easy_first": "from easy to hard",
    "uncertain": "the most uncertain first",
}
_IN_A_MIX = {"data": "by data", "easy_first": "from easy to hard", "uncertain": "by uncertainty"}


class Order(Section):
    """A mixture of orders: each gives its share of the prompts of a run."""

    data: float = knob(1.0, "Share of prompts that come in the order of the data, shuffled or not", ge=0, le=1000)
    easy_first: float = knob(
        0.0,
        "Share of prompts that come from the easiest to the hardest, by their pass rate (`meta.pass_rate`)",
        ge=0,
        le=1000,
    )
    uncertain: float = knob(
        0.0,
        "Share of prompts whose pass rate in this run is least certain: near one half, or seldom met",
        ge=0,
        le=1000,
    )

    @property
    def shares(self) -> dict[str, float]:
        """The share of each order; they sum to 1, and orders without a share are left out."""
        given = {"data": self.data, "easy_first": self.easy_first, "uncertain": self.uncertain}
        total = sum(given.values())  # 0 where none has a share
        return {name: share / total for name, share in given.items() if share}

    @property
    def short(self) -> str:
        """The mixture in a few words, for a line of a schedule."""
        shares = self.shares
        if len(shares) == 1:
            return _ALONE[next(iter(shares))]
        return "order: " + ", ".join(f"{100 * share:.3g}% {_IN_A_MIX[name]}" for name, share in shares.items())

    def problems(self) -> Iterator[FieldProblem]:
        """The paths begin at the section."""
        if not (self.data or self.easy_first or self.uncertain):
            yield FieldProblem("data", "no order has a share; give at least one order a share")

    def data_problems(self, train: Mapping[str, int]) -> Iterator[FieldProblem]:
        """`train`: the training counts of the training prompts. The paths begin at the config's root."""
        if self.easy_first and (why := same_rates(train)):
            yield FieldProblem("data.order.easy_first", f"{why}, so there is no order from easy to hard; set it to 0")


class Pool(Section):
    """A part of the training prompts: by pass rate, tags or domain, or by several of these."""

    above: float | None = None
    up_to: float | None = None
    tags: list[str] = []
    domains: list[str] = []

    def holds(self, rate: float | None, tags: Collection[str], domain: str = "") -> bool:
        """Whether a prompt belongs to the part. A prompt without a known pass rate is in no range of pass rates."""
        if self.bounded and rate is None:
            return False
        if rate is not None and not (self.above is None or rate > self.above):
            return False
        if rate is not None and not (self.up_to is None or rate <= self.up_to):
            return False
        if self.domains and domain not in self.domains:
            return False
        return not self.tags or not set(self.tags).isdisjoint(tags)

    @property
    def bounded(self) -> bool:
        return self.above is not None or self.up_to is not None

    @property
    def words(self) -> str:
        """The property that the prompts of this part share, in words that follow "none of the prompts ..."."""
        rate = [f"above {self.above:g}"] if self.above is not None else []
        rate += [f"of at most {self.up_to:g}"] if self.up_to is not None else []
        parts = [f"has a pass rate {' and '.join(rate)}"] if rate else []
        parts += (
            [f"has {'the tag' if len(self.tags) == 1 else 'one of the tags'} {', '.join(self.tags)}"]
            if self.tags
            else []
        )
        if self.domains:
            which = "the domain" if len(self.domains) == 1 else "one of the domains"
            parts.append(f"is of {which} {', '.join(self.domains)}")
        return " and ".join(parts) or "is there"

    @property
    def short(self) -> str:
        """The part in a few words, for a line of a schedule."""
        parts = [f"above {self.above:g}"] if self.above is not None else []
        parts += [f"up to {self.up_to:g}"] if self.up_to is not None else []
        found = [f"pass rates {' and '.join(parts)}"] if parts else []
        found += [f"tags {', '.join(self.tags)}"] if self.tags else []
        return " and ".join(found + ([f"domains {', '.join(self.domains)}"] if self.domains else []))

    def unfit(self, train: Mapping[str, int]) -> str:
        """The reason why no training prompt can belong to the part, as far as the counts show."""
        rated, solved, unsolved = (train.get(key, 0) for key in ("rated", "rated_solved", "rated_unsolved"))
        if not self.bounded:
            return ""
        if not rated:
            return "no training prompt has a pass rate yet (`meta.pass_rate`)"
        if rated == solved and not self.holds_rate(1.0):
            return f"all {rated:,} training prompts with a pass rate were always solved"
        if rated == unsolved and not self.holds_rate(0.0):
            return f"none of the {rated:,} training prompts with a pass rate was ever solved"
        return ""

    def holds_rate(self, rate: float) -> bool:
        return self.model_copy(update={"tags": [], "domains": []}).holds(rate, ())


def same_rates(train: Mapping[str, int]) -> str:
    """The reason why pass rates give no order; empty if they do."""
    rated, solved, unsolved = (train.get(key, 0) for key in ("rated", "rated_solved", "rated_unsolved"))
    if not rated:
        return "no training prompt has a pass rate yet (`meta.pass_rate`)"
    if rated == solved:
        return f"all {rated:,} training prompts with a pass rate were always solved"
    if rated == unsolved:
        return f"none of the {rated:,} training prompts with a pass rate was ever solved"
    return ""

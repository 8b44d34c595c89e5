"""Named parts put together to a reward, each kept for the charts; a part that is missing excludes the response.

reward = sum of weight x part, or an explicit expression over the parts' names (METHODS 5, hybrid reward system).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainer.config.rewards import RewardPart
from trainer.contracts import Verdict

from .parts import Item, Part
from .rubric import RubricScore, score_rubric, training_score


@dataclass(frozen=True)
class Composed:
    """`total` is None exactly when `excluded` gives a reason. `parts` has every part, shadows too, as measured: neither
    clipped nor weighted.
    """

    total: float | None
    parts: Mapping[str, Part] = field(default_factory=dict)
    excluded: str = ""

    @property
    def components(self) -> dict[str, float]:
        """The values there are, by name."""
        return {name: part.value for name, part in self.parts.items() if part.value is not None}


def compose(parts: Sequence[RewardPart], measured: Mapping[str, Part]) -> Composed:
    """The reward of one response out of its parts. Every part that is missing is named; a shadow excludes nothing."""
    counted = [part for part in parts if not part.shadow]
    lacking = [f"{part.name}: {measured[part.name].why}" for part in counted if measured[part.name].value is None]
    if lacking:
        return Composed(None, measured, "; ".join(lacking))
    total = sum(part.weight * part.clipped(measured[part.name].value or 0.0) for part in counted)
    return Composed(total, measured)


def exclusions(rewards: Iterable[Composed]) -> Counter[str]:
    """How many responses were excluded, by reason."""
    return Counter(reward.excluded for reward in rewards if reward.excluded)


def rubric_verdicts(parts: Sequence[RewardPart], measured: Mapping[str, Part]) -> tuple[Verdict, ...]:
    """The verdicts that a viewer shows of a response: those of the first part that counts and has any, else a shadow's."""
    for part in sorted(parts, key=lambda part: part.shadow):
        if measured[part.name].verdicts:
            return measured[part.name].verdicts
    return ()


def rubric_score(item: Item, given: Sequence[Verdict]) -> RubricScore | None:
    """The rubric score of these verdicts, over the criteria that they are about. Without any, what verifiers say of the
    whole rubric; None where there is no rubric. May raise VerifierError."""
    if item.rubric is None:
        return None
    if not given:
        return score_rubric(item.rubric, item.response)
    about = {verdict.criterion_id for verdict in given}
    kept = tuple(criterion for criterion in item.rubric.criteria if criterion.id in about)
    return training_score(item.rubric.model_copy(update={"criteria": kept}), given)

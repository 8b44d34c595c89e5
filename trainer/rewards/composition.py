"""Named parts make a reward. Each part is kept for the charts; a missing part excludes the response.

reward = sum of weight x part, or an explicit expression over the parts' names.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainer.config.rewards.expression import Expression
from trainer.config.rewards.parts import RewardPart
from trainer.contracts import Verdict
from trainer.rubrics.score import RubricScore, score_rubric, training_score

from .parts import Item, Part


@dataclass(frozen=True)
class Composed:
    """`total` is None if, and only if, `excluded` gives a reason. `parts` has every part, shadows too, as measured: neither clipped nor
    weighted.
    """

    total: float | None
    parts: Mapping[str, Part] = field(default_factory=dict)
    excluded: str = ""

    @property
    def components(self) -> dict[str, float]:
        """The values of the parts that have one, by name."""
        return {name: part.value for name, part in self.parts.items() if part.value is not None}


def compose(
    parts: Sequence[RewardPart], measured: Mapping[str, Part], expression: Expression | None = None
) -> Composed:
    """The reward of one response from its clipped parts: their weighted sum, or the value of the expression.

    Every missing part is named. A shadow excludes nothing; neither does a part behind a closed gate.
    """
    counted = {part.name: part for part in parts if not part.shadow}
    values = {name: _clipped(part, measured[name].value) for name, part in counted.items()}
    if expression is not None:
        found = expression.evaluate(values, {name: measured[name].why for name in counted})
        return Composed(found.value, measured, found.why)
    lacking = [f"{name}: {measured[name].why}" for name, value in values.items() if value is None]
    if lacking:
        return Composed(None, measured, "; ".join(lacking))
    return Composed(sum((counted[name].weight * (value or 0.0) for name, value in values.items()), 0.0), measured)


def _clipped(part: RewardPart, value: float | None) -> float | None:
    return None if value is None else part.clipped(value)


def exclusions(rewards: Iterable[Composed]) -> Counter[str]:
    """The number of excluded responses, by reason."""
    return Counter(reward.excluded for reward in rewards if reward.excluded)


def rubric_verdicts(parts: Sequence[RewardPart], measured: Mapping[str, Part]) -> tuple[Verdict, ...]:
    """The verdicts that a viewer shows for a response: those of the first part that counts and has verdicts, else those of a shadow."""
    for part in sorted(parts, key=lambda part: part.shadow):
        if measured[part.name].verdicts:
            return measured[part.name].verdicts
    return ()


def rubric_score(item: Item, given: Sequence[Verdict]) -> RubricScore | None:
    """The rubric score of these verdicts, over the criteria that they are about. Without verdicts, the score of the whole rubric by
    verifiers; None if there is no rubric. May raise VerifierError."""
    if item.rubric is None:
        return None
    if not given:
        return score_rubric(item.rubric, item.response)
    about = {verdict.criterion_id for verdict in given}
    kept = tuple(criterion for criterion in item.rubric.criteria if criterion.id in about)
    return training_score(item.rubric.model_copy(update={"criteria": kept}), given)

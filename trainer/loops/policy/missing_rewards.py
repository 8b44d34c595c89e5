"""Steps in which no response has a reward change no weights, so a run of them ends early."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainer.config.rewards.arm import FrozenChoicePart
from trainer.config.rewards.parts import HttpPart, PythonPart, RewardPart
from trainer.rollouts import Reward

from ..session.errors import Unrewarded

IN_A_ROW = 3
"""The number of steps in a row that may have no reward once the run has had one: a judge may be unreadable for a small batch."""


class MissingRewards:
    """Counts steps in a row without a reward. The counts go with the checkpoint, so that a resumed run decides alike.

    Until the first reward one such step is enough, unless the run is `asynchronous`: groups of several steps were then scored
    before somebody could mend the cause. A step does not count if a service did not answer and its part says
    `exclude`: the user chose to continue without it.
    """

    def __init__(self, parts: Sequence[RewardPart], asynchronous: bool = False) -> None:
        self._parts, self._asynchronous = parts, asynchronous
        self._row, self._any = 0, False

    def look(self, step: int, rewards: Sequence[Reward]) -> None:
        """Raises Unrewarded with the parts that are missing and why; the count then starts at 0."""
        if not rewards or any(reward.away for reward in rewards):
            return
        if any(reward.total is not None for reward in rewards):
            self._row, self._any = 0, True
            return
        self._row += 1
        if self._row >= (IN_A_ROW if self._any or self._asynchronous else 1):
            steps = f"{self._row} steps in a row up to step {step}" if self._row > 1 else f"step {step}"
            self._row = 0
            raise Unrewarded(f"No response of {steps} has a reward, so there is nothing to learn. {self._why(rewards)}")

    def _why(self, rewards: Sequence[Reward]) -> str:
        """The missing parts, the most frequent reason of each, and what helps."""
        found = list(self._missing(rewards))
        if not found:  # every part has a value, but the expression gives none
            reason = Counter(reward.excluded for reward in rewards).most_common(1)[0][0]
            return f"The expression: {reason}. Remedies: fork the run with another expression."
        told = "; ".join(f"{name}: {why.rstrip('.')}" for name, why in found)
        named = {name for name, _ in found}
        remedies = dict.fromkeys(remedy(part) for part in self._parts if part.name in named)
        return f"{told}. Remedies: {'; '.join(remedies)}."

    def _missing(self, rewards: Sequence[Reward]) -> Iterator[tuple[str, str]]:
        reasons: dict[str, Counter[str]] = {}
        for reward in rewards:
            for part in reward.parts:
                if part.value is None and not part.shadow:
                    reasons.setdefault(part.name, Counter())[part.why] += 1
        for name, counted in reasons.items():
            yield name, counted.most_common(1)[0][0]

    def state_dict(self) -> dict[str, Any]:
        return {"row": self._row, "any": self._any}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the counts; checkpoints of earlier releases have none."""
        self._row, self._any = int(state.get("row", 0)), bool(state.get("any", False))


def remedy(part: RewardPart) -> str:
    """The advice about a part that has a value for no response. Nothing is lost: the run continues from its last step."""
    if isinstance(part, PythonPart):
        return f"mend the function {part.entry!r} and resume the run, which continues from its last step"
    if isinstance(part, HttpPart):
        return f"mend the service {part.endpoint!r} and resume the run, which continues from its last step"
    if isinstance(part, FrozenChoicePart):
        return (
            "read what the judge answered under Rollouts, and fork the run with longer judgements (judge.max_new_tokens), longer "
            "turns of the judge before the writer's (turn_steps), or a model that was taught both forms"
        )
    if part.asks_judge:
        return f"read what {part.asks_judge!r} answered under Rollouts, and fork the run with a judge that can be read"
    return f"fork the run with another part instead of {part.name!r}"

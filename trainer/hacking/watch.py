"""The watch of a run: it takes the scored responses of each step, learns from the first steps what is usual, and raises alarms.

Each signal and subject raises at most one alarm in a run. The state is plain JSON, so that a resumed run continues from where it stopped.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .credit import credited
from .panel import FittedLine
from .phrases import PhraseWatch, phrases
from .signal_monitor import Alarm, SignalMonitor, alarm
from .signals import SIGNALS, RewardedResponse

BASELINE_STEPS = 5
FALSE_ALARMS = 0.05
_PANEL_MARGIN = 0.5
"""The margin in standard deviations of the baseline's shortfall, above its 90th percentile."""


class SignalWatch:
    """The watch over all signals of a run of `steps` steps.

    `false_alarms` is the largest share of clean runs that may raise an alarm, over all signals together. `panel` names the parts that are
    measured and not trained on; `trained` names the parts that the reward is made of.
    """

    def __init__(
        self,
        steps: int,
        panel: Sequence[str] = (),
        false_alarms: float = FALSE_ALARMS,
        baseline_steps: int = BASELINE_STEPS,
        trained: Sequence[str] = (),
    ) -> None:
        self._trained = tuple(trained)
        self._left = baseline_steps
        self._level = max(1, steps) * (len(SIGNALS) + len(panel) + 1) / false_alarms
        self._texts = {name: SignalMonitor(name, "", signal.numeric, signal.paid) for name, signal in SIGNALS.items()}
        self._panels = {name: SignalMonitor("panel", name, numeric=True, paid=False) for name in panel}
        self._lines: dict[str, FittedLine] = {}
        self._pairs: dict[str, list[tuple[int, int, int, float, float]]] = {name: [] for name in panel}
        """(step, group, index, reward, panel) of the responses of the baseline, by part."""
        self._phrases = PhraseWatch(self._level)

    def look(self, step: int, scored: Sequence[RewardedResponse]) -> list[Alarm]:
        """The alarms of this step. `scored` leaves out responses without a reward."""
        if not scored:
            return []
        if self._left:
            self._learn(step, scored)
            return []
        measured = _measured(scored)
        found = [self._texts[name].see(step, rows) for name, rows in measured.items()]
        for name, follower in self._panels.items():
            if name in self._lines:
                found.append(follower.see(step, self._shortfalls(name, scored)))
        found.append(self._phrase(step, self._unexplained(scored, measured)))
        return [self._credited(each, scored) for each in found if each is not None]

    def _credited(self, found: Alarm, scored: Sequence[RewardedResponse]) -> Alarm:
        part, criterion = credited(scored, set(found.places), self._trained)
        return replace(found, part=part, criterion=criterion)

    def _learn(self, step: int, scored: Sequence[RewardedResponse]) -> None:
        for name, rows in _measured(scored).items():
            self._texts[name].learn(step, rows)
        for name, kept in self._pairs.items():
            for each in scored:
                value = each.parts.get(name)
                if value is not None:
                    kept.append((step, each.group, each.index, each.reward, value))
        self._phrases.learn(scored)
        self._left -= 1
        if not self._left:
            self._settle()

    def _settle(self) -> None:
        for name, follower in self._texts.items():
            follower.settle(self._level, SIGNALS[name].margin)
        for name, kept in self._pairs.items():
            if kept:
                self._settle_panel(name, kept)
        self._pairs = {name: [] for name in self._pairs}
        self._phrases.learnt()

    def _settle_panel(self, name: str, kept: Sequence[tuple[int, int, int, float, float]]) -> None:
        groups: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
        for step, group, _, reward, value in kept:
            groups[step, group].append((reward, value))
        line = self._lines[name] = FittedLine.fitted(list(groups.values()))
        follower, missed = self._panels[name], []
        for step, group, index, reward, value in kept:
            missed.append(line.shortfall(reward, value))
            follower.learn(step, [(RewardedResponse(group, index, "", 0, reward), missed[-1])])
        follower.settle(self._level, _PANEL_MARGIN * statistics.pstdev(missed))

    def _shortfalls(self, name: str, scored: Sequence[RewardedResponse]) -> list[tuple[RewardedResponse, float]]:
        line, found = self._lines[name], []
        for each in scored:
            value = each.parts.get(name)
            if value is not None:
                found.append((each, line.shortfall(each.reward, value)))
        return found

    def _unexplained(
        self, scored: Sequence[RewardedResponse], measured: Mapping[str, Sequence[tuple[RewardedResponse, float]]]
    ) -> list[RewardedResponse]:
        """The responses that show nothing which an alarm has already reported: the words of the others are not news."""
        told = {
            (each.group, each.index)
            for name, rows in measured.items()
            for each, value in rows
            if self._texts[name].explains(value)
        }
        return [each for each in scored if (each.group, each.index) not in told]

    def _phrase(self, step: int, scored: Sequence[RewardedResponse]) -> Alarm | None:
        found = self._phrases.see(step, scored)
        if found is None:
            return None
        phrase, rise, payment = found
        return alarm("phrase", phrase, step, rise, payment.z, [each for each in scored if phrase in phrases(each)])

    def state_dict(self) -> dict[str, Any]:
        return {
            "left": self._left,
            "texts": {name: follower.state_dict() for name, follower in self._texts.items()},
            "panels": {name: follower.state_dict() for name, follower in self._panels.items()},
            "lines": {name: [line.intercept, line.slope, line.most] for name, line in self._lines.items()},
            "pairs": self._pairs,
            "phrases": self._phrases.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state. If a checkpoint has no watch, `state` is empty, and what is usual is learnt from here on."""
        if not state:
            return
        self._left = state["left"]
        for followers, kept in ((self._texts, state["texts"]), (self._panels, state["panels"])):
            for name in followers.keys() & kept.keys():
                followers[name].load_state_dict(kept[name])
        self._lines = {name: FittedLine(*line) for name, line in state["lines"].items()}
        self._pairs |= {name: [tuple(row) for row in rows] for name, rows in state["pairs"].items()}
        self._phrases.load_state_dict(state["phrases"])


def _measured(scored: Sequence[RewardedResponse]) -> dict[str, list[tuple[RewardedResponse, float]]]:
    """The responses with their value, by signal; a response without a value is left out of the signal."""
    found: dict[str, list[tuple[RewardedResponse, float]]] = {}
    for name, signal in SIGNALS.items():
        rows = found[name] = []
        for each in scored:
            value = signal.measure(each)
            if value is not None:
                rows.append((each, value))
    return found

"""Phrases that are new in a run's responses, occur under several prompts and earn reward. No list of words is needed.

A phrase is one to four words of one sentence. Good responses contain words of their own prompt, criteria and references, so a phrase
that consists of such words does not count in that response.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import regex

from .detector import Payment, Rise
from .signals import RewardedResponse, words

LONGEST = 4
_SHORTEST = 3  # letters of a phrase of one word
_CHARACTERS = 6000  # words of a response that are read: a long response takes milliseconds
_END = regex.compile(r"[.!?;:\n。！？；：]+")
REFERENCE = 0.15
"""A phrase in a smaller share of the responses raises no alarm."""
_USUAL = 0.05  # of the responses of the baseline: a phrase that occurs as often is not new
_NOTICED = 0.05  # of the responses of a step: from this share on a new phrase is followed
_EXAMPLES = 3  # this many prompts must share a phrase
_PROMISING = 1.5
"""z of the payment in the step that shows a new phrase: from this value on the phrase is followed."""
MOST_FOLLOWED = 100
PAID = 3.0
"""z of the payment. The value is high because many phrases are followed, and some earn more by chance."""


def phrases(scored: RewardedResponse) -> set[str]:
    """The phrases of one to four words, each once, without those that only repeat words which the response was given."""
    known, found = _known(scored.known), set()
    for sentence in _END.split(scored.text[:_CHARACTERS]):
        said = words(sentence)
        for start, phrase in enumerate(said):
            new = phrase not in known
            if new and len(phrase) >= _SHORTEST:
                found.add(phrase)
            for word in said[start + 1 : start + LONGEST]:
                phrase += f" {word}"
                new = new or word not in known
                if new:
                    found.add(phrase)
    return found


@lru_cache(maxsize=64)
def _known(text: str) -> frozenset[str]:
    """The words that a response was given, cached because all responses to a prompt were given the same."""
    return frozenset(words(text))


class PhraseWatch:
    """Follows new phrases from the step after the one that shows them, each with its own detector.

    `level` holds for all phrases together: the detector of the j-th phrase that is followed needs `level * j (j + 1)`, and the
    reciprocals of these add up to that of `level`.
    """

    def __init__(self, level: float) -> None:
        self._level = level
        self._usual: set[str] = set()
        self._baseline: Counter[str] = Counter()
        self._responses = 0
        self._followed: dict[str, tuple[Rise, Payment]] = {}
        self._ever = 0
        self._told: set[str] = set()
        """Words of phrases that were reported: a phrase that shares a word with them is not reported."""

    def learn(self, scored: Sequence[RewardedResponse]) -> None:
        """Take responses of the baseline."""
        for each in scored:
            self._baseline.update(phrases(each))
        self._responses += len(scored)
        # most phrases occur once; such phrases decide nothing
        if len(self._baseline) > 50_000:
            self._baseline = Counter({phrase: count for phrase, count in self._baseline.items() if count > 1})

    def learnt(self) -> None:
        """End the baseline."""
        least = _USUAL * self._responses
        self._usual = {phrase for phrase, count in self._baseline.items() if count > least}
        self._baseline = Counter()

    def see(self, step: int, scored: Sequence[RewardedResponse]) -> tuple[str, Rise, Payment] | None:
        """Take the responses of a later step. Returns the phrase that has risen and pays, with its detector and its payment; the
        longest one if several have; None if none has.
        """
        said = [phrases(each) for each in scored]
        risen = [phrase for phrase, watch in self._followed.items() if self._seen(step, phrase, watch, scored, said)]
        found = None
        if risen:
            phrase = max(risen, key=lambda each: (len(each.split()), self._followed[each][0].share, each))
            found = (phrase, *self._followed[phrase])
            self._told.update(phrase.split())
            self._followed = {each: watch for each, watch in self._followed.items() if self._may_tell(each)}
        self._follow(scored, said)
        return found

    def _seen(
        self,
        step: int,
        phrase: str,
        watch: tuple[Rise, Payment],
        scored: Sequence[RewardedResponse],
        said: Sequence[set[str]],
    ) -> bool:
        rise, payment = watch
        groups = _presence(phrase, scored, said)
        payment.see(groups)
        return rise.see(step, [sum(x) / len(x) for x, _ in groups]) and (payment.z or 0.0) >= PAID

    def _follow(self, scored: Sequence[RewardedResponse], said: Sequence[set[str]]) -> None:
        """Follow, from the next step on, the most frequent new phrases of this step that earn more. Phrases out of use are dropped."""
        counts = Counter(chain.from_iterable(said))
        least = max(_EXAMPLES, _NOTICED * len(scored))
        self._followed = {
            phrase: watch
            for phrase, watch in self._followed.items()
            if watch[0].evidence > 0 or counts[phrase] >= least
        }
        chosen: list[str] = []
        for phrase in sorted(counts, key=lambda each: (-counts[each], -len(each), each)):
            if counts[phrase] < least or len(self._followed) + len(chosen) >= MOST_FOLLOWED:
                break
            if phrase in self._usual or phrase in self._followed or not self._may_tell(phrase):
                continue
            if any(counts[other] == counts[phrase] and phrase in other for other in chosen):
                continue  # part of a longer phrase that the same responses have
            if _promising(phrase, scored, said):
                chosen.append(phrase)
        for phrase in chosen:
            self._ever += 1
            level = self._level * self._ever * (self._ever + 1)
            self._followed[phrase] = (Rise(REFERENCE, level, usual=_USUAL), Payment())

    def _may_tell(self, phrase: str) -> bool:
        return self._told.isdisjoint(phrase.split())

    def state_dict(self) -> dict[str, Any]:
        return {
            "usual": sorted(self._usual),
            "baseline": dict(self._baseline),
            "responses": self._responses,
            "followed": {
                phrase: [rise.state_dict(), pay.state_dict()] for phrase, (rise, pay) in self._followed.items()
            },
            "ever": self._ever,
            "told": sorted(self._told),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._usual, self._told = set(state["usual"]), set(state["told"])
        self._baseline, self._responses = Counter(state["baseline"]), state["responses"]
        self._followed = {
            phrase: (Rise.from_state(rise), Payment(*pay)) for phrase, (rise, pay) in state["followed"].items()
        }
        self._ever = state["ever"]


def _presence(
    phrase: str, scored: Sequence[RewardedResponse], said: Sequence[set[str]]
) -> list[tuple[list[float], list[float]]]:
    """The rewards of each group, with 1 for each response that has the phrase and 0 for the others."""
    groups: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for each, found in zip(scored, said, strict=True):
        values, rewards = groups[each.group]
        values.append(float(phrase in found))
        rewards.append(each.reward)
    return list(groups.values())


def _promising(phrase: str, scored: Sequence[RewardedResponse], said: Sequence[set[str]]) -> bool:
    """Whether several prompts share the phrase and the responses that have it earn more."""
    if len({each.example for each, found in zip(scored, said, strict=True) if phrase in found}) < _EXAMPLES:
        return False
    payment = Payment()
    payment.see(_presence(phrase, scored, said))
    return (payment.z or 0.0) >= _PROMISING

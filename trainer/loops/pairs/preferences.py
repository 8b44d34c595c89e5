"""The pairs of a preference recipe: read once and checked; what is left out is counted by reason."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from trainer.config.preferences import PreferenceData
from trainer.contracts import Example, Message, Response
from trainer.contracts.pairs import LabelledPair, labelled_pairs
from trainer.contracts.plurals import with_noun
from trainer.curriculum import KnownPrompt, known_of
from trainer.inference.turns import TurnsUnfit

from ..session.errors import RunFailed

Text = TypeVar("Text")
"""An answer with its prompt as tokens, in the form that the recipe uses."""


@dataclass(frozen=True)
class PairSide(Generic[Text]):
    """One answer of a pair."""

    response: Response
    tokens: Text


@dataclass(frozen=True)
class Pair(Generic[Text]):
    """Two answers to one prompt. `target` is how sure it is that `chosen` is better, from 0.5 for a tie to 1.

    `strength` and `against` are the mean strengths, 1 to 3, of the votes for the chosen and for the rejected answer; 0 without
    votes. `pro`, `con` and `ties` count the votes.
    """

    key: str
    domain: str
    prompt: tuple[Message, ...]
    chosen: PairSide[Text]
    rejected: PairSide[Text]
    target: float
    strength: float
    against: float
    pro: int
    con: int
    ties: int
    first_chosen: bool
    """Whether the chosen answer is the earlier one of the example."""
    known: KnownPrompt | None = None
    """The value by which a phase chooses the pair; None if the pair was made during the run."""

    @property
    def tie(self) -> bool:
        return self.target == 0.5

    @property
    def agreement(self) -> float | None:
        """The share of the votes for the chosen answer; a tie is half a vote. None with a single vote."""
        votes = self.pro + self.con + self.ties
        return (self.pro + self.ties / 2) / votes if votes > 1 else None

    @property
    def sides(self) -> tuple[PairSide[Text], PairSide[Text]]:
        return self.chosen, self.rejected


@dataclass(frozen=True)
class PairSets(Generic[Text]):
    """`left_out` says as text what could not be used, for the log. Held-out pairs are only those with a winner."""

    train: list[Pair[Text]]
    heldout: list[Pair[Text]]
    left_out: list[str]


Encode = Callable[[Sequence[Message], str], Text]
"""Turns a prompt and an answer into tokens. Raises TurnsUnfit."""


def prepare_pairs(
    examples: Sequence[Example],
    data: PreferenceData,
    encode: Encode[Text],
    length: Callable[[Text], int],
    max_heldout: int,
) -> PairSets[Text]:
    """Split and encode the pairs. `max_heldout` is a number of examples. Raises RunFailed if nothing is left to train on."""
    reasons: Counter[str] = Counter()
    train: list[Pair[Text]] = []
    heldout: list[Pair[Text]] = []
    evaluated = 0
    for example in examples:
        held = example.split == "heldout"
        if held and evaluated == max_heldout:
            continue
        found = list(_pairs(example, data, encode, length, reasons))
        if not held:
            train += found
        elif found := [pair for pair in found if not pair.tie]:
            heldout += found
            evaluated += 1
    left_out = [f"{with_noun(count, 'pairs')} left out: {reason}" for reason, count in reasons.items()]
    if not train:
        why = "; ".join(left_out) or "no example of the training split has a comparison"
        raise RunFailed(f"no pair to train on, of {with_noun(len(examples), 'examples')}: {why}")
    return PairSets(train, heldout, left_out)


def _pairs(
    example: Example,
    data: PreferenceData,
    encode: Encode[Text],
    length: Callable[[Text], int],
    reasons: Counter[str],
) -> Iterator[Pair[Text]]:
    responses = {response.id: response for response in example.responses}
    for labels in labelled_pairs(example, data.scale):
        first, second = responses[labels.first], responses[labels.second]
        if why := _unusable(labels, first, second, data):
            reasons[why] += 1
            continue
        try:
            sides = tuple(PairSide(each, encode(example.prompt, each.text)) for each in (first, second))
        except TurnsUnfit as error:
            reasons[str(error)] += 1
            continue
        if max(length(side.tokens) for side in sides) > data.max_tokens:
            reasons[f"longer than data.max_tokens = {data.max_tokens}"] += 1
            continue
        yield _pair(example, labels, sides[0], sides[1], data)


def _unusable(labels: LabelledPair, first: Response, second: Response, data: PreferenceData) -> str:
    if not labels.votes:
        return "nobody could decide"
    if not labels.decided and data.ties == "leave_out":
        return "a tie"
    if first.text == second.text:
        return "both answers are the same"
    return ""


def _pair(
    example: Example, labels: LabelledPair, first: PairSide[Text], second: PairSide[Text], data: PreferenceData
) -> Pair[Text]:
    first_chosen = len(labels.for_first) >= len(labels.for_second)
    chosen, rejected = (first, second) if first_chosen else (second, first)
    pro, con = (labels.for_first, labels.for_second) if first_chosen else (labels.for_second, labels.for_first)
    share = labels.share if first_chosen else 1.0 - labels.share
    certain = data.labels == "majority" and labels.decided
    return Pair(
        key=example.key,
        domain=example.domain,
        prompt=example.prompt,
        chosen=chosen,
        rejected=rejected,
        target=1.0 if certain else share,
        strength=sum(pro) / len(pro) if pro else 0.0,
        against=sum(con) / len(con) if con else 0.0,
        pro=len(pro),
        con=len(con),
        ties=labels.ties,
        first_chosen=first_chosen,
        known=known_of(example),
    )

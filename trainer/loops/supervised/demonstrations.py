"""The data of supervised tuning: conversations as tokens, with the answers to learn marked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trainer.config.recipes.sft import SftData
from trainer.contracts import Example, Message, Response, Rubric
from trainer.contracts.pairs import labelled_pairs
from trainer.contracts.plurals import with_noun
from trainer.inference.turns import CharacterSpan, LearntTurns, TurnsUnfit, encode_turns
from trainer.rewards.guard import SECONDS, call_guarded
from trainer.rubrics import score_rubric

from ..session.errors import RunFailed

WRONG_TURNS = "wrong_turns"
"""Key of an example's `meta`: places of messages that are not learnt; the answer is the last one."""
WRONG_SPANS = "wrong_spans"
"""The key for parts of messages that are not learned: [place, start, end], in characters."""


class Unusable(ValueError):
    """The reason why an example is left out."""


@dataclass(frozen=True)
class Demonstration:
    """A conversation to learn from; `turns` are its tokens, `example` is the example that holds it."""

    example: Example
    messages: tuple[Message, ...]
    turns: LearntTurns

    @property
    def key(self) -> str:
        return self.example.key


@dataclass(frozen=True)
class DemonstrationSets:
    """`left_out` says as text what could not be used, for the log."""

    train: list[Demonstration]
    heldout: list[Demonstration]
    left_out: list[str]


def prepare_demonstrations(
    examples: Sequence[Example], tokenizer: Any, ends: Sequence[int], data: SftData, max_heldout: int
) -> DemonstrationSets:
    """Split and encode the examples; `max_heldout` is a number of examples. Raises RunFailed if nothing is left to train on."""
    train: list[Demonstration] = []
    heldout: list[Demonstration] = []
    reasons: Counter[str] = Counter()
    evaluated = 0
    for example in examples:
        held = example.split == "heldout"
        if held and evaluated == max_heldout:
            continue
        try:
            found = list(_demonstrations(example, tokenizer, ends, data))
        except (Unusable, TurnsUnfit) as error:
            reasons[str(error)] += 1
            continue
        (heldout if held else train).extend(found)
        evaluated += held
    left_out = [f"{with_noun(count, 'examples')} left out: {reason}" for reason, count in reasons.items()]
    if not train:
        why = "; ".join(left_out) or "none is in the training split"
        raise RunFailed(f"no example to train on, of {len(examples):,}: {why}")
    return DemonstrationSets(train, heldout, left_out)


def _demonstrations(example: Example, tokenizer: Any, ends: Sequence[int], data: SftData) -> Iterator[Demonstration]:
    for messages in _conversations(example, data):
        answers = [place for place, message in enumerate(messages) if place and message.role == "assistant"]
        learn = set(answers if data.turns == "all" else answers[-1:]) - _wrong_turns(example)
        if not learn:
            raise Unusable("none of their turns is to be learnt")
        turns = encode_turns(tokenizer, messages, learn, ends, _wrong_spans(example))
        if not turns.learnt:
            raise Unusable("no part of their answer is to be learnt")
        if len(turns.tokens) > data.max_tokens:
            raise Unusable(f"longer than data.max_tokens = {data.max_tokens}")
        yield Demonstration(example, tuple(messages), turns)


def _conversations(example: Example, data: SftData) -> Iterator[list[Message]]:
    """The conversations of an example, each a prompt and an answer. Raises Unusable."""
    if data.source == "conversations":
        yield _conversation(example)
    elif data.source == "references":
        if not example.reference:
            raise Unusable("they have no reference answer")
        yield _answered(example, example.reference)
    elif data.source == "chosen":
        for response in _chosen(example, data.scale):
            yield _answered(example, response.text)
    else:
        yield _answered(example, _best(example, data.min_reward).text)


def _conversation(example: Example) -> list[Message]:
    if example.prompt[-1].role == "assistant":
        return list(example.prompt)
    if len(example.responses) != 1:
        raise Unusable(
            "they have several answers, none of them chosen" if example.responses else "they contain no answer"
        )
    return _answered(example, example.responses[0].text)


def _answered(example: Example, text: str) -> list[Message]:
    if example.prompt[-1].role == "assistant":
        raise Unusable("their prompt ends with an answer already")
    return [*example.prompt, Message(role="assistant", content=text)]


def _chosen(example: Example, scale: str) -> list[Response]:
    """The responses that are preferred in one pair or more and rejected in none."""
    won: dict[str, None] = {}
    lost = set()
    for pair in labelled_pairs(example, scale):
        if pair.decided:
            first = len(pair.for_first) > len(pair.for_second)
            won[pair.first if first else pair.second] = None
            lost.add(pair.second if first else pair.first)
    found = [response for response in example.responses if response.id in won and response.id not in lost]
    if not found:
        raise Unusable("none of their answers was preferred without also being rejected")
    return found


def _best(example: Example, least: float | None) -> Response:
    """The first of the responses with the highest reward. Best of n needs two responses with a reward to choose from."""
    rewards = _rewards(example)
    if len(rewards) < 2:
        raise Unusable("fewer than two of their answers have a reward")
    best = max(rewards.values())
    if least is not None and best < least:
        raise Unusable(f"their best answer is worth less than data.min_reward = {least:g}")
    return next(response for response in example.responses if rewards.get(response.id) == best)


def _rewards(example: Example) -> dict[str, float]:
    """Rewards by response: `meta.rewards`, which stored rollouts have; else the score of the rubric's verifiers."""
    stored = example.meta.get("rewards")
    if isinstance(stored, dict):
        known = {response.id for response in example.responses}
        return {name: float(value) for name, value in stored.items() if name in known and _is_number(value)}
    if example.rubric is None or any(criterion.verifier is None for criterion in example.rubric.criteria):
        return {}
    found = {}
    for response in example.responses:
        score = verified_score(example.rubric, response.text)
        if score is not None:
            found[response.id] = score
    return found


def verified_score(rubric: Rubric, text: str) -> float | None:
    """The score of a text by the rubric's verifiers; None if one of them gave up or took too long."""
    score, _ = call_guarded(partial(score_rubric, rubric, text), SECONDS)
    return score.score if score else None


def _wrong_turns(example: Example) -> set[int]:
    value = example.meta.get(WRONG_TURNS, [])
    if not isinstance(value, list) or not all(isinstance(turn, int) for turn in value):
        raise Unusable(f"their meta.{WRONG_TURNS} is not a list of whole numbers")
    return set(value)


def _wrong_spans(example: Example) -> list[CharacterSpan]:
    value = example.meta.get(WRONG_SPANS, [])
    if not isinstance(value, list) or not all(
        isinstance(each, list) and len(each) == 3 and all(isinstance(part, int) for part in each) for each in value
    ):
        raise Unusable(f"their meta.{WRONG_SPANS} is not a list of [turn, start, end]")
    return [CharacterSpan(*each) for each in value]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""Conversations as tokens, some of which are learnt: the assistant's turns, or parts of them.

Each turn is tokenised apart from what stands before it, as a sampler sees it: the tokens of a prompt are those that
`encode_prompt` gives, for any text that follows.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from jinja2 import TemplateError

from trainer.contracts import Message


class TurnsUnfit(ValueError):
    """A conversation that cannot be divided into what is read and what is learnt; the message says why."""


class CharacterSpan(NamedTuple):
    """Characters `start <= c < end` of the content of message `turn`."""

    turn: int
    start: int
    end: int


class LearntTurns(NamedTuple):
    """A conversation up to the last learnt token. `learnt`: the places of the tokens to learn, ascending."""

    tokens: tuple[int, ...]
    learnt: tuple[int, ...]


def encode_turns(
    tokenizer: Any,
    messages: Sequence[Message],
    learn: Collection[int],
    ends: Sequence[int],
    without: Sequence[CharacterSpan] = (),
) -> LearntTurns:
    """The conversation with the messages at the places `learn` marked as learnt, each up to the token that ends it.

    `ends` are the tokens that end a response; if the template writes none behind the last turn, the first of them is added.
    `without` are spans that stay in the context and are not learnt. Raises TurnsUnfit.
    """
    conversation = [message.model_dump() for message in messages]
    tokens: list[int] = []
    learnt: list[int] = []
    ids: list[int] = []
    done = 0
    last_turn = max(learn, default=-1)
    whole = _rendered(tokenizer, conversation[: last_turn + 1], opened=False)
    for turn in sorted(learn):
        opening = _rendered(tokenizer, conversation[:turn], opened=True)
        closing = whole if turn == last_turn else _rendered(tokenizer, conversation[: turn + 1], opened=False)
        if not (closing.startswith(opening) and whole.startswith(closing) and len(opening) >= done):
            raise TurnsUnfit("the model's chat template writes earlier turns differently once others follow")
        tokens += _ids(tokenizer, whole[done : len(opening)])
        ids, marks = _turn(tokenizer, closing[len(opening) :], messages[turn], turn, ends, without)
        learnt += [len(tokens) + place for place, mark in enumerate(marks) if mark]
        tokens += ids
        done = len(closing)
    if learn and not any(token in ends for token in ids):
        learnt.append(len(tokens))
        tokens.append(ends[0])
    last = learnt[-1] if learnt else -1
    return LearntTurns(tuple(tokens[: last + 1]), tuple(learnt))


def encode_conversation(tokenizer: Any, messages: Sequence[Message]) -> tuple[int, ...]:
    """The whole conversation as the template closes it, which a reward model reads. Raises TurnsUnfit."""
    text = _rendered(tokenizer, [message.model_dump() for message in messages], opened=False)
    return tuple(_ids(tokenizer, text))


def _turn(
    tokenizer: Any, text: str, message: Message, turn: int, ends: Sequence[int], without: Sequence[CharacterSpan]
) -> tuple[list[int], list[bool]]:
    """Tokens of one turn, and which of them are learnt. Text of the template after the end is never sampled, so it is not learnt."""
    spans = _spans_in(text, message, [span for span in without if span.turn == turn])
    if spans:
        found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids, offsets = list(found["input_ids"]), found["offset_mapping"]
        marks = [not any(start < to and end > frm for frm, to in spans) for start, end in offsets]
    else:
        ids = _ids(tokenizer, text)
        marks = [True] * len(ids)
    last = max((place for place, token in enumerate(ids) if token in ends), default=len(ids))
    return ids, [mark and place <= last for place, mark in enumerate(marks)]


def _spans_in(text: str, message: Message, spans: Sequence[CharacterSpan]) -> list[tuple[int, int]]:
    if not spans:
        return []
    start = text.find(message.content)
    if start < 0:
        raise TurnsUnfit("the model's chat template changes the text of a turn, so spans in it cannot be found")
    for span in spans:
        if not 0 <= span.start < span.end <= len(message.content):
            raise TurnsUnfit(f"a span from {span.start} to {span.end} does not lie in its turn")
    return [(start + span.start, start + span.end) for span in spans]


def _rendered(tokenizer: Any, conversation: list[dict[str, Any]], opened: bool) -> str:
    if not conversation:
        raise TurnsUnfit("the conversation begins with an answer")
    try:
        return str(tokenizer.apply_chat_template(conversation, add_generation_prompt=opened, tokenize=False))
    except TemplateError as error:
        raise TurnsUnfit(f"the model's chat template refuses the conversation: {error}") from error


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])

"""Records of responses that are too large for one post: their turns come before them, piece by piece.

An episode of thousands of turns may have a hundred megabytes, and a server takes a few at once.
"""

from collections.abc import Iterator, Sequence

from trainer.contracts import RolloutRecord, RolloutTurn, TurnPart, TurnsData

PIECE = 200_000
"""Characters of a turn in one piece. JSON may need six bytes for one of them."""
SHORT = 100_000
"""Characters of a prompt or a response that cannot be sent whole."""


def split(record: RolloutRecord, most: int) -> tuple[list[TurnsData], RolloutRecord]:
    """The turns of the record in events of about `most` bytes, and the record without them, of at most `most` bytes.

    A record that is too large without its turns loses its tokens, then what its judges said at length, and at last the ends of its texts.
    A response that is cut counts as one that ended at the limit of its length, so no dataset takes it for a whole one.
    """
    events = list(_events(record, most)) if record.turns else []
    lighter = record.model_copy(update={"turns": (), "turns_apart": len(record.turns)}) if record.turns else record
    for lighten in (_without_tokens, _without_words, _cut):
        if size(lighter) <= most:
            break
        lighter = lighten(lighter)
    return events, lighter


def size(record: RolloutRecord) -> int:
    return len(record.model_dump_json().encode())


def _events(record: RolloutRecord, most: int) -> Iterator[TurnsData]:
    part: list[TurnPart] = []
    length = 0
    for piece in _pieces(record.turns):
        adds = len(piece.model_dump_json().encode())
        if part and length + adds > most:
            yield _event(record, part)
            part, length = [], 0
        part.append(piece)
        length += adds
    yield _event(record, part)


def _event(record: RolloutRecord, turns: Sequence[TurnPart]) -> TurnsData:
    return TurnsData(phase=record.phase, group=record.group, index=record.index, turns=tuple(turns))


def _pieces(turns: Sequence[RolloutTurn]) -> Iterator[TurnPart]:
    for number, turn in enumerate(turns):
        facts = turn.model_dump(exclude={"text"})
        for part, start in enumerate(range(0, max(len(turn.text), 1), PIECE)):
            yield TurnPart(**facts, number=number, part=part, text=turn.text[start : start + PIECE])


def _without_tokens(record: RolloutRecord) -> RolloutRecord:
    told = {**record.facts, "tokens_not_sent": len(record.tokens)}
    return record.model_copy(update={"tokens": (), "logprobs": (), "ratios": (), "mask": (), "facts": told})


def _without_words(record: RolloutRecord) -> RolloutRecord:
    parts = tuple(each.model_copy(update={"shown": None, "why": each.why[:1000]}) for each in record.parts)
    return record.model_copy(update={"parts": parts, "scaffold": record.scaffold[:SHORT]})


def _cut(record: RolloutRecord) -> RolloutRecord:
    cut = {"prompt": record.prompt[:SHORT], "response": record.response[:SHORT]}
    if len(record.response) > SHORT:
        cut["finish_reason"] = "length"
    return record.model_copy(update=cut)

"""The turns of an episode, a page at a time: of its record if it is small, else rows of their own.

A page has no texts, only how each turn begins and how long it is; a text is read by itself, in parts. So an episode opens as soon with
thousands of long turns as with ten.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection
from django.db.models import QuerySet, Sum

from trainer.contracts import RolloutTurn
from webapp.core.problems import Invalid

from ..models import EpisodeTurn, Rollout

PIECE = 200_000
"""Characters of a text that are read at once."""
EXCERPT = 200
AROUND = 60
"""Characters before and after what was searched for."""
MOST_HITS = 200
READ_AT_ONCE, SEAM = 4, 500  # parts, and characters: as many as a search may have
_FACTS = ("author", "kind", "tool", "call", "failed", "tokens", "seconds", "reward")


@dataclass(frozen=True)
class TurnOutline:
    """A turn without its text; `size` counts its characters."""

    number: int
    author: str
    kind: str
    tool: str
    call: str
    failed: bool
    tokens: int
    seconds: float | None
    reward: float | None
    size: int
    excerpt: str

    @property
    def title(self) -> str:
        """The author and what was done, in a few words."""
        if self.kind == "result":
            return f"{'Error' if self.failed else 'Result'} of {self.tool or 'a tool'}"
        did = {"call": f"calls {self.tool or 'a tool'}", "reasoning": "thinks"}.get(self.kind, "says")
        return f"{'Policy' if self.author == 'policy' else 'Environment'} {did}"


@dataclass(frozen=True)
class TurnPage:
    """`next` is the number of the turn after the page; None at the end. `total` counts all turns."""

    items: list[TurnOutline]
    total: int
    next: int | None


@dataclass(frozen=True)
class TurnText:
    """A part of a turn's text; `next` is the part after it."""

    number: int
    part: int
    text: str
    next: int | None


@dataclass(frozen=True)
class TurnHit:
    """A turn in which a text was found, and the words around its first place there."""

    number: int
    words: str


@dataclass(frozen=True)
class EpisodeFacts:
    """The totals of an episode. `seconds` and `reward` sum what was recorded; None if nothing was."""

    turns: int
    characters: int
    tokens: int
    calls: int
    seconds: float | None
    reward: float | None


def count(rollout: Rollout) -> int:
    """The number of its turns; 0 for a response in one go."""
    apart: int = rollout.content.get("turns_apart") or 0
    return apart or len(rollout.content.get("turns") or ())


def page(rollout: Rollout, start: int, limit: int) -> TurnPage:
    """The turns from number `start` on."""
    total = count(rollout)
    end = min(start + limit, total)
    items = list(_stored(rollout, start, end) if _apart(rollout) else _held(rollout, start, end))
    return TurnPage(items, total, end if end < total else None)


def text(rollout: Rollout, number: int, part: int = 0) -> TurnText | None:
    """A part of the text of a turn; None if there is none."""
    if number >= count(rollout):
        return None
    if _apart(rollout):
        rows = _rows(rollout).filter(number=number, part__gte=part).order_by("part").values_list("part", "text")[:2]
        found = list(rows)
        if not found or found[0][0] != part:
            return None
        return TurnText(number, part, found[0][1], found[1][0] if len(found) > 1 else None)
    whole = _turns(rollout)[number].text
    start, end = part * PIECE, (part + 1) * PIECE
    if part and start >= len(whole):
        return None
    return TurnText(number, part, whole[start:end], part + 1 if end < len(whole) else None)


def search(rollout: Rollout, words: str) -> tuple[list[TurnHit], bool]:
    """The turns whose text has the words, in any case, or whose tool is called so; and whether there may be more. A text that lies across
    two parts of a turn is not found. Raises Invalid at `q`."""
    if not words.strip():
        raise Invalid("There is nothing to search for.", {"q": "must not be empty"})
    found = _searched(rollout, words) if _apart(rollout) else _looked_through(rollout, words)
    return found[:MOST_HITS], len(found) > MOST_HITS


def texts(rollout: Rollout) -> Iterator[str]:
    """The texts and the tools of the turns that lie apart, a few in memory at a time; nothing if the record holds its turns.

    A part of a turn begins with the end of the one before it, so that a phrase at the seam is whole.
    """
    if not _apart(rollout):
        return
    turn, before = -1, ""
    rows = _rows(rollout).order_by("number", "part").values_list("number", "tool", "text")
    for number, tool, text in rows.iterator(chunk_size=READ_AT_ONCE):
        if number != turn:
            turn, before = number, ""
            yield tool
        yield before + text
        before = text[-SEAM:]


def facts(rollout: Rollout) -> EpisodeFacts:
    if _apart(rollout):
        first = _rows(rollout).filter(part=0)
        sums = first.aggregate(tokens=Sum("tokens"), seconds=Sum("seconds"), reward=Sum("reward"))
        size = _rows(rollout).aggregate(size=Sum("size"))["size"]
        calls = first.filter(kind="call").count()
        return EpisodeFacts(count(rollout), size or 0, sums["tokens"] or 0, calls, sums["seconds"], sums["reward"])
    turns = _turns(rollout)
    return EpisodeFacts(
        len(turns),
        sum(len(turn.text) for turn in turns),
        sum(turn.tokens for turn in turns),
        sum(turn.kind == "call" for turn in turns),
        _sum(turn.seconds for turn in turns),
        _sum(turn.reward for turn in turns),
    )


def _sum(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _apart(rollout: Rollout) -> bool:
    return bool(rollout.content.get("turns_apart"))


def _turns(rollout: Rollout) -> list[RolloutTurn]:
    return [RolloutTurn.model_validate(turn) for turn in rollout.content.get("turns") or ()]


def _held(rollout: Rollout, start: int, end: int) -> Iterator[TurnOutline]:
    for number, turn in enumerate(_turns(rollout)[start:end], start):
        told = {name: getattr(turn, name) for name in _FACTS}
        yield TurnOutline(number=number, **told, size=len(turn.text), excerpt=turn.text[:EXCERPT])


def _rows(rollout: Rollout) -> QuerySet[EpisodeTurn]:
    place = {name: getattr(rollout, name) for name in ("run_id", "step", "phase", "group", "index")}
    return EpisodeTurn.objects.filter(**place, number__lt=count(rollout))


def _stored(rollout: Rollout, start: int, end: int) -> Iterator[TurnOutline]:
    rows = _rows(rollout).filter(number__gte=start, number__lt=end)
    sizes = dict(rows.values_list("number").annotate(size=Sum("size")))
    names = ("number", *_FACTS, "excerpt")
    for row in rows.filter(part=0).order_by("number").values(*names):
        yield TurnOutline(**row, size=sizes[row["number"]])


SEARCH = """
SELECT number, tool, substring(text FROM greatest(at - %s, 1) FOR %s) FROM (
    SELECT number, part, tool, text, position(lower(%s) IN lower(text)) AS at FROM experiments_episodeturn
    WHERE run_id = %s AND step = %s AND phase = %s AND "group" = %s AND "index" = %s AND number < %s
) AS turn
WHERE at > 0 OR (part = 0 AND position(lower(%s) IN lower(tool)) > 0)
ORDER BY number, part LIMIT %s
"""


def _searched(rollout: Rollout, words: str) -> list[TurnHit]:
    place: list[int | str] = [rollout.run_id, rollout.step, rollout.phase, rollout.group, rollout.index, count(rollout)]
    with connection.cursor() as cursor:
        cursor.execute(SEARCH, [AROUND, 2 * AROUND + len(words), words, *place, words, MOST_HITS + 1])
        return _once(TurnHit(number, around) for number, _, around in cursor.fetchall())


def _looked_through(rollout: Rollout, words: str) -> list[TurnHit]:
    wanted, found = words.lower(), []
    for number, turn in enumerate(_turns(rollout)):
        at = turn.text.lower().find(wanted)
        if at >= 0 or wanted in turn.tool.lower():
            start = max(at - AROUND, 0)
            found.append(TurnHit(number, turn.text[start : start + 2 * AROUND + len(words)]))
    return found


def _once(hits: Iterator[TurnHit]) -> list[TurnHit]:
    found: dict[int, TurnHit] = {}
    for hit in hits:
        found.setdefault(hit.number, hit)
    return list(found.values())

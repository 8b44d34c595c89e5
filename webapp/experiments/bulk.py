"""Writes of many rows in one statement: one JSON document in, one INSERT ... ON CONFLICT. Several times faster than the ORM's own bulk
insert, which quotes every cell by itself. The ingest endpoint depends on this speed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from trainer.contracts import ArtifactData, RolloutRecord, TurnsData
from webapp.core.database import packed_arrays, prepared


@dataclass
class StepMetrics:
    """All metrics of one step; `histograms` as JSON."""

    step: int
    time: datetime
    values: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class RolloutRow:
    step: int
    record: RolloutRecord


@dataclass(frozen=True)
class TurnsRow:
    step: int
    data: TurnsData


@dataclass(frozen=True)
class ToldLine:
    """A line of the log, and the number of the event that told it."""

    event: int
    time: datetime
    step: int
    level: str
    message: str


class StoredLine(NamedTuple):
    """A line of the log as open pages get it, without a model's object: batches have many lines."""

    id: int
    time: datetime
    step: int
    level: str
    message: str


@dataclass(frozen=True)
class ArtifactRow:
    step: int
    data: ArtifactData


# parts of a reward by name; what has no parts may have named components. A rollout that is replaced keeps its id, to which
# links lead, and notes the id that was drawn for its repeat: so workers tell what they have not read (`rollouts.indexing`)
ROLLOUTS = """
INSERT INTO experiments_rollout
    (run_id, step, phase, "group", index, example_key, reward, advantage, excluded, part_values, content)
SELECT %s, step, content ->> 'phase', (content ->> 'group')::int, (content ->> 'index')::int,
    content ->> 'example_key', (content ->> 'reward')::float8, (content ->> 'advantage')::float8,
    content ->> 'excluded' <> '',
    (content -> 'components') || COALESCE(
        (SELECT jsonb_object_agg(part ->> 'name', part -> 'value') FROM jsonb_array_elements(content -> 'parts') AS part),
        '{}'
    ),
    content
FROM jsonb_to_recordset(%s::jsonb) AS new(step int, content jsonb)
ON CONFLICT (run_id, step, phase, "group", index) DO UPDATE SET
    example_key = EXCLUDED.example_key, reward = EXCLUDED.reward, advantage = EXCLUDED.advantage,
    excluded = EXCLUDED.excluded, part_values = EXCLUDED.part_values, content = EXCLUDED.content, stored_again = EXCLUDED.id
"""

ARTIFACTS = """
INSERT INTO experiments_artifact (run_id, step, role, path, bytes, digest, model, files, created_at)
SELECT %s, step, data ->> 'role', data ->> 'path', (data ->> 'bytes')::bigint, data ->> 'digest',
    NULLIF(data -> 'model', 'null'), data -> 'files', now()
FROM jsonb_to_recordset(%s::jsonb) AS new(step int, data jsonb)
ON CONFLICT (run_id, path) DO UPDATE SET
    step = EXCLUDED.step, role = EXCLUDED.role, bytes = EXCLUDED.bytes, digest = EXCLUDED.digest, model = EXCLUDED.model,
    files = EXCLUDED.files, removed_at = NULL, erase_due = FALSE
"""

# the numbers of lines are their order
LINES = """
INSERT INTO experiments_logline (run_id, event, time, step, level, message)
SELECT %(run)s::bigint, event, time, step, level, message
FROM unnest(%(event)b::bigint[], %(time)b::timestamptz[], %(step)b::int[], %(level)b::text[], %(message)b::text[])
    WITH ORDINALITY AS new(event, time, step, level, message, place)
ORDER BY place
RETURNING event, id
"""

OLD_TURNS = """
DELETE FROM experiments_episodeturn
WHERE run_id = %s AND step = %s AND phase = %s AND "group" = %s AND "index" = %s
"""

TURNS = """
INSERT INTO experiments_episodeturn
    (run_id, step, phase, "group", index, number, part, author, kind, tool, call, failed, tokens, seconds, reward,
     size, excerpt, text)
SELECT %s, %s, %s, %s, %s, number, part, author, kind, tool, call, failed, tokens, seconds, reward,
    length(text), left(text, 200), text
FROM jsonb_to_recordset(%s::jsonb) AS new(
    number int, part int, author text, kind text, tool text, call text, failed bool, tokens int, seconds float8, reward float8, text text
)
ON CONFLICT (run_id, step, phase, "group", index, number, part) DO UPDATE SET
    author = EXCLUDED.author, kind = EXCLUDED.kind, tool = EXCLUDED.tool, call = EXCLUDED.call, failed = EXCLUDED.failed,
    tokens = EXCLUDED.tokens, seconds = EXCLUDED.seconds, reward = EXCLUDED.reward, size = EXCLUDED.size,
    excerpt = EXCLUDED.excerpt, text = EXCLUDED.text
"""


def upsert_turns(run_id: int, rows: Iterable[TurnsRow]) -> None:
    """Writes turns of episodes in their order. Turn 0 begins an episode: what its place had before is gone, also turns that it has no more."""
    for row in rows:
        data = row.data
        place = [run_id, row.step, data.phase, data.group, data.index]
        with connection.cursor() as cursor:
            if data.turns[0].number == data.turns[0].part == 0:
                cursor.execute(OLD_TURNS, place)
            cursor.execute(TURNS, [*place, f"[{','.join(turn.model_dump_json() for turn in data.turns)}]"])


def upsert_rollouts(run_id: int, rows: Iterable[RolloutRow]) -> None:
    """Writes rollouts. No two rows may share step, phase, group and index."""
    texts = [f'{{"step":{row.step},"content":{row.record.model_dump_json()}}}' for row in rows]
    if texts:
        _insert(ROLLOUTS, run_id, f"[{','.join(texts)}]")


def upsert_artifacts(run_id: int, rows: Iterable[ArtifactRow]) -> None:
    """Writes artifacts. No two rows may share a path."""
    texts = [f'{{"step":{row.step},"data":{row.data.model_dump_json()}}}' for row in rows]
    if texts:
        _insert(ARTIFACTS, run_id, f"[{','.join(texts)}]")


def insert_lines(run_id: int, lines: Sequence[ToldLine]) -> list[StoredLine]:
    """The rows as they are stored, in the order of the lines."""
    if not lines:
        return []
    given: dict[str, Any] = {
        "run": run_id,
        "event": packed_arrays.bigints([line.event for line in lines]),
        "time": packed_arrays.times(line.time for line in lines),
        "step": packed_arrays.integers([line.step for line in lines]),
        "level": packed_arrays.texts(line.level for line in lines),
        "message": packed_arrays.texts(line.message for line in lines),
    }
    ids = dict(prepared.rows(LINES, given))
    return [StoredLine(ids[line.event], line.time, line.step, line.level, line.message) for line in lines]


def _insert(statement: str, run_id: int, document: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, [run_id, document])

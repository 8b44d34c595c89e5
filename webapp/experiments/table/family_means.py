"""The means over seeds by which folded rows are ordered, stored before anybody asks for them.

A change of such a mean writes a `FamilyChange` in its transaction. A worker computes the means of changed rows again, some seconds later.
A reader takes the stored means of all rows without a change, and computes the means of the other rows itself, so it never shows an old
one. While too many rows have a change, as after an upgrade, it computes them all.
"""

import time
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import BooleanField, F, QuerySet
from django.db.models.expressions import RawSQL

from webapp.core.database import locks

from .columns import Column, Source
from .models import FamilyMean

SECONDS = 10.0  # of one task; beat starts the next one soon
AT_ONCE, CHANGES = 500, 5_000  # rows of one transaction, and changes among which they are looked for
MOST_CHANGED = 500
"""Changed rows whose means a reader computes itself."""
MOST_READ = 20_000
"""Changes of all workspaces among which a reader looks for those rows. There are more only if no worker has looked for a long time."""
OLDEST = """
SELECT experiment_id, kin, array_agg(id) FROM (SELECT * FROM experiments_familychange ORDER BY id LIMIT %s) AS change
GROUP BY experiment_id, kin LIMIT %s
"""
FORGET = """
DELETE FROM experiments_familymean AS old USING unnest(%s::bigint[], %s::text[]) AS changed(experiment_id, kin)
WHERE (old.experiment_id, old.kin) = (changed.experiment_id, changed.kin)
"""
KIN_OF = "CASE WHEN {0}.family = '' THEN {0}.id::varchar ELSE {0}.family END"
"""As the index `runs_of_a_family` has it."""
KIN = KIN_OF.format("experiments_run")
HUGE = 1e150
"""Values are this large at most in means that order rows: the database's average fails if a square of a value is too large for it."""
BOUNDED = f"CASE WHEN held.{{0}} IS NOT NULL THEN greatest(least(held.{{0}}, {HUGE}), -{HUGE}) END"  # these two skip what is missing
MEAN = "greatest(least(avg({0} ORDER BY {0}), max({0})), min({0}))"
"""The mean, which is between its values also where it is rounded. They are added in one order, so it is the same wherever it is computed."""
# first one value for each seed, then the mean over the seeds; a run whose seed is not known counts by itself
COMPUTE = f"""
WITH member AS MATERIALIZED (
    SELECT changed.experiment_id, changed.kin, experiments_run.id, coalesce(seed.number::text, 'run ' || experiments_run.id) AS seed
    FROM unnest(%s::bigint[], %s::text[]) AS changed(experiment_id, kin)
    JOIN experiments_run ON experiments_run.experiment_id = changed.experiment_id AND {KIN} = changed.kin
    JOIN experiments_experiment AS place ON place.id = experiments_run.experiment_id
    LEFT JOIN experiments_runcolumn AS seeds ON (seeds.workspace_id, seeds.source, seeds.path) = (place.workspace_id, 'config', 'seed')
    LEFT JOIN experiments_runvalue AS seed ON seed.run_id = experiments_run.id AND seed.column_id = seeds.id
    WHERE experiments_run.archived_at IS NULL
        AND NOT EXISTS (SELECT FROM tracking_loggedrun WHERE run_id = experiments_run.id AND deleted_at IS NOT NULL)
)
INSERT INTO experiments_familymean (experiment_id, kin, column_id, newest, number, low, high)
SELECT experiment_id, kin, column_id, max(newest), {", ".join(map(MEAN.format, ("number", "low", "high")))}
FROM (
    SELECT member.experiment_id, member.kin, held.column_id, max(member.id) AS newest,
        {", ".join(f"{MEAN.format(BOUNDED.format(name))} AS {name}" for name in ("number", "low", "high"))}
    FROM member
    JOIN experiments_runvalue AS held ON held.run_id = member.id
    JOIN experiments_runcolumn AS known ON known.id = held.column_id
    WHERE known.source <> 'config' AND held.number IS NOT NULL
    GROUP BY member.experiment_id, member.kin, held.column_id, member.seed
) AS by_seed
GROUP BY experiment_id, kin, column_id
"""  # noqa: S608  ours
DONE = "DELETE FROM experiments_familychange WHERE id = ANY(%s)"
# also of experiments that have just been deleted: their means are still there
OF_WORKSPACE = """
WITH log AS MATERIALIZED (SELECT experiment_id, kin FROM experiments_familychange LIMIT %(read)s + 1)
(SELECT NULL::bigint, '' WHERE (SELECT count(*) FROM log) > %(read)s)
UNION ALL
(
    SELECT DISTINCT log.experiment_id, log.kin FROM log LEFT JOIN experiments_experiment AS experiment ON experiment.id = log.experiment_id
    WHERE experiment.workspace_id = %(workspace)s OR experiment.id IS NULL LIMIT %(most)s + 1
)
"""
AMONG = "(experiments_{table}.experiment_id, {kin}) {among} (SELECT * FROM unnest(%s::bigint[], %s::text[]))"
RUNS_AMONG = AMONG.format(table="run", kin=KIN, among="IN")
MEANS_APART = AMONG.format(table="familymean", kin="experiments_familymean.kin", among="NOT IN")


def keep_changed() -> None:
    """Computes the means of changed rows, for some seconds. Does nothing if another worker is doing it."""
    until = time.monotonic() + SECONDS
    with locks.exclusive(locks.Work.FAMILIES, 0) as ours:
        while ours and time.monotonic() < until and keep_oldest():
            pass


def keep_oldest() -> bool:
    """Computes the means of the rows that changed first, and tells whether more may wait."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(OLDEST, [CHANGES, AT_ONCE])
        found = cursor.fetchall()
        places = [[row[0] for row in found], [row[1] for row in found]]
        seen = [change for row in found for change in row[2]]
        if found:
            cursor.execute(FORGET, places)
            cursor.execute(COMPUTE, places)
            cursor.execute(DONE, [seen])
    return len(found) == AT_ONCE or len(seen) == CHANGES


@dataclass(frozen=True)
class StoredMeans:
    """The folded rows of a workspace that have `changed`, read once: what is stored for the others is right."""

    changed: list[tuple[int, str]]

    @property
    def _places(self) -> list[list[Any]]:
        return [[experiment for experiment, _ in self.changed], [kin for _, kin in self.changed]]

    def of(self, column: Column) -> "QuerySet[Any]":
        """The `mean` and the `newest` run of each row that has not changed."""
        rows = FamilyMean.objects.filter(column_id=column.pk, **{f"{column.attribute}__isnull": False})
        if self.changed:
            rows = rows.filter(RawSQL(MEANS_APART, self._places, output_field=BooleanField()))  # noqa: S611  ours
        return rows.annotate(mean=F(column.attribute))

    def others(self, runs: "QuerySet[Any]") -> "QuerySet[Any]":
        """The runs of the rows that have changed."""
        if not self.changed:
            return runs.none()
        experiments = {experiment for experiment, _ in self.changed}
        among = RawSQL(RUNS_AMONG, self._places, output_field=BooleanField())  # noqa: S611  ours
        return runs.filter(among, experiment__in=experiments)


def stored_means(workspace_id: int, column: Column) -> StoredMeans | None:
    """None if the means of this column are not stored, or too many changes wait for a worker."""
    if column.pk is None or column.source == Source.CONFIG:
        return None
    with connection.cursor() as cursor:
        cursor.execute(OF_WORKSPACE, {"read": MOST_READ, "workspace": workspace_id, "most": MOST_CHANGED})
        changed = cursor.fetchall()
    too_many = len(changed) > MOST_CHANGED or any(experiment is None for experiment, _ in changed)
    return None if too_many else StoredMeans(changed)

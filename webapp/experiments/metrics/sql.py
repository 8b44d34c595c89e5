"""The statements of `points`, which say how points lie in the database: as rows and in stretches.

A step of a metric is in one of the two, so that both together, in one statement, are all points, even if steps move between them
meanwhile.
"""

from webapp.core.database import binary_rows

# The points of one metric behind a step, by step. Stretches do not overlap: the first that matters is the last that begins at the step
# or before it, and in the order of their first steps all their points are in order.
BEHIND = """
    SELECT * FROM (
        (
            SELECT step, value, time, not_finite, histogram FROM experiments_metricpoint
            WHERE run_id = {run} AND key = {key} AND step > {after} {only} ORDER BY step LIMIT {most}
        ) UNION ALL (
            SELECT point.step, point.value, point.time, '', NULL FROM experiments_metricstretch AS stretch
            CROSS JOIN LATERAL unnest(steps, numbers, times) WITH ORDINALITY AS point(step, value, time, place)
            WHERE stretch.run_id = {run} AND stretch.key = {key} AND point.step > {after}
                AND stretch.first_step >= coalesce((
                    SELECT max(first_step) FROM experiments_metricstretch
                    WHERE run_id = {run} AND key = {key} AND first_step <= {after}
                ), 0)
            ORDER BY stretch.first_step, point.place LIMIT {most}
        )
    ) AS either ORDER BY step LIMIT {most}
"""
FINITE = "AND value IS NOT NULL"
NUMBER = "AND (value IS NOT NULL OR not_finite <> '')"
PAGE = BEHIND.format(run="%(run)s", key="%(key)s", after="%(after)s", most="%(most)s", only="")
NUMBERS = BEHIND.format(run="%(run)s", key="%(key)s", after="%(after)s", most="%(most)s", only=NUMBER)

# For each run a loose scan of the indexes (run, key, step): from key to key, and of each the last step.
NEWEST = """
SELECT wanted.run_id, latest.key, latest.step, latest.time, latest.value, latest.not_finite, latest.has_histogram
FROM unnest(%(runs)s::bigint[]) AS wanted(run_id)
CROSS JOIN LATERAL (
    WITH RECURSIVE keys AS (
        SELECT least(
            (SELECT key FROM experiments_metricpoint WHERE run_id = wanted.run_id ORDER BY key LIMIT 1),
            (SELECT key FROM experiments_metricstretch WHERE run_id = wanted.run_id ORDER BY key LIMIT 1)
        )::text AS key
        UNION ALL
        SELECT least(
            (SELECT key FROM experiments_metricpoint
                WHERE run_id = wanted.run_id AND key > keys.key ORDER BY key LIMIT 1),
            (SELECT key FROM experiments_metricstretch
                WHERE run_id = wanted.run_id AND key > keys.key ORDER BY key LIMIT 1)
        )::text FROM keys WHERE keys.key IS NOT NULL
    )
    SELECT keys.key, newest.* FROM keys CROSS JOIN LATERAL (
        (
            SELECT step, time, value, not_finite, histogram IS NOT NULL AS has_histogram FROM experiments_metricpoint
            WHERE run_id = wanted.run_id AND key = keys.key ORDER BY step DESC LIMIT 1
        ) UNION ALL (
            SELECT last_step, times[cardinality(times)], numbers[cardinality(numbers)], '', false
            FROM experiments_metricstretch
            WHERE run_id = wanted.run_id AND key = keys.key ORDER BY first_step DESC LIMIT 1
        ) ORDER BY step DESC LIMIT 1
    ) AS newest
) AS latest
ORDER BY wanted.run_id, latest.key
"""
# of one run and key, as a part of another statement; the two are given twice
LAST_VALUE = """(
    SELECT value FROM (
        (SELECT step, value FROM experiments_metricpoint WHERE run_id = {run} AND key = {key} ORDER BY step DESC LIMIT 1)
        UNION ALL
        (
            SELECT last_step, numbers[cardinality(numbers)] FROM experiments_metricstretch
            WHERE run_id = {run} AND key = {key} ORDER BY first_step DESC LIMIT 1
        )
    ) AS newest ORDER BY step DESC LIMIT 1
)"""
COPIED = """
SELECT wanted.place, found.step, found.value, found.time
FROM unnest(%(places)s::int[], %(keys)s::text[], %(after)s::int[]) AS wanted(place, key, after)
CROSS JOIN LATERAL ({found}) AS found
""".replace(
    "{found}", BEHIND.format(run="%(run)s", key="wanted.key", after="wanted.after", most="%(most)s", only=FINITE)
)
FIRST_VALUES = """
SELECT found.value FROM unnest(%(runs)s::bigint[]) AS wanted(run_id) CROSS JOIN LATERAL ({found}) AS found
ORDER BY wanted.run_id
""".replace("{found}", BEHIND.format(run="wanted.run_id", key="%(key)s", after="%(after)s", most="1", only=FINITE))
HIGHEST = "SELECT max(value) FROM ({found}) AS found".replace(
    "{found}", BEHIND.format(run="%(run)s", key="%(key)s", after="%(after)s", most="NULL", only=FINITE)
)
TIMES = """
SELECT wanted.run_id, found.time
FROM unnest(%(runs)s::bigint[], %(keys)s::text[], %(steps)s::int[]) AS wanted(run_id, key, step)
CROSS JOIN LATERAL (
    SELECT time FROM experiments_metricpoint
    WHERE run_id = wanted.run_id AND key = wanted.key AND step = wanted.step
    UNION ALL
    SELECT times[array_position(steps, wanted.step)] FROM (
        SELECT steps, times FROM experiments_metricstretch
        WHERE run_id = wanted.run_id AND key = wanted.key AND first_step <= wanted.step
        ORDER BY first_step DESC LIMIT 1
    ) AS stretch WHERE wanted.step = ANY(steps)
) AS found
"""
# all finite values of one metric of one run, in no order
ALL = """
    SELECT step, value, time FROM experiments_metricpoint
    WHERE run_id = {run} AND key = {key} AND value IS NOT NULL
    UNION ALL
    SELECT point.step, point.value, point.time FROM experiments_metricstretch
    CROSS JOIN LATERAL unnest(steps, numbers, times) AS point(step, value, time)
    WHERE run_id = {run} AND key = {key}
"""
TOTAL = "SELECT coalesce(sum(value), 0) FROM ({found}) AS found".replace(
    "{found}", ALL.format(run="%(run)s", key="%(key)s")
)
SUMMARIES = """
SELECT wanted.key, (array_agg(value ORDER BY step DESC))[1], min(value), max(value), max(step)
FROM unnest(%(keys)s::text[]) AS wanted(key) CROSS JOIN LATERAL ({found}) AS found GROUP BY wanted.key
""".replace("{found}", ALL.format(run="%(run)s", key="wanted.key"))
# the first and the last step with a finite value
ENDS_OF = """
    SELECT min(first) AS first, max(last) AS last FROM (
        (
            SELECT step AS first, step AS last FROM experiments_metricpoint
            WHERE run_id = {run} AND key = {key} AND value IS NOT NULL ORDER BY step LIMIT 1
        ) UNION ALL (
            SELECT step, step FROM experiments_metricpoint
            WHERE run_id = {run} AND key = {key} AND value IS NOT NULL ORDER BY step DESC LIMIT 1
        ) UNION ALL (
            SELECT first_step, last_step FROM experiments_metricstretch
            WHERE run_id = {run} AND key = {key} ORDER BY first_step LIMIT 1
        ) UNION ALL (
            SELECT first_step, last_step FROM experiments_metricstretch
            WHERE run_id = {run} AND key = {key} ORDER BY first_step DESC LIMIT 1
        )
    ) AS each
"""
# At most `most` + 1 points of each run, the newest always among them. Over few steps, every n-th point. Over many steps, the point at, or
# before, each of `most` + 1 evenly spaced steps: each is two looks into an index, however long the run is.
SPARKS = """
WITH wanted AS (
    SELECT run_id, key, ends.* FROM unnest(%(runs)s::bigint[], %(keys)s::text[]) AS wanted(run_id, key)
    CROSS JOIN LATERAL ({ends}) AS ends
), near AS (
    SELECT run_id, step, value,
        row_number() OVER (PARTITION BY run_id ORDER BY step DESC) - 1 AS back,
        count(*) OVER (PARTITION BY run_id) AS n
    FROM wanted CROSS JOIN LATERAL ({found}) AS found
    WHERE last - first < %(many)s
), far AS (
    SELECT DISTINCT run_id, step, value FROM wanted CROSS JOIN generate_series(0, %(most)s) AS place
    CROSS JOIN LATERAL (SELECT first + (last - first)::bigint * place / %(most)s AS until) AS target
    CROSS JOIN LATERAL (
        (
            SELECT step, value FROM experiments_metricpoint
            WHERE run_id = wanted.run_id AND key = wanted.key AND value IS NOT NULL AND step <= until
            ORDER BY step DESC LIMIT 1
        ) UNION ALL (
            SELECT steps[width_bucket(until::int, steps)], numbers[width_bucket(until::int, steps)]
            FROM experiments_metricstretch
            WHERE run_id = wanted.run_id AND key = wanted.key AND first_step <= until ORDER BY first_step DESC LIMIT 1
        ) ORDER BY step DESC LIMIT 1
    ) AS found
    WHERE last - first >= %(many)s
)
SELECT run_id, value FROM (
    SELECT run_id, step, value FROM near WHERE back %% greatest(ceil(n::numeric / %(most)s)::int, 1) = 0
    UNION ALL SELECT * FROM far
) AS either ORDER BY run_id, step
""".replace("{found}", ALL.format(run="wanted.run_id", key="wanted.key")).replace(
    "{ends}", ENDS_OF.format(run="wanted.run_id", key="wanted.key")
)
# the first and the last step with a finite value of one metric, for each run that has one
ENDS = """
SELECT wanted.run_id, ends.first, ends.last FROM unnest(%(runs)s::bigint[]) AS wanted(run_id) CROSS JOIN LATERAL ({ends}) AS ends
WHERE ends.first IS NOT NULL
""".replace("{ends}", ENDS_OF.format(run="wanted.run_id", key="%(key)s"))
# The points of one metric of many runs behind a step and up to another, as sums over each range of steps; of a stretch only the part that
# is asked for is unpacked. Values whose sum may be no number are divided before: not those near zero, of which nothing might be left.
RANGES_CELLS = (
    ("number", "int8"),
    ("place", "int8"),
    ("points", "int8"),
    ("total", "float8"),
    ("large", "float8"),
    ("seconds", "float8"),
)
LARGE = 2**32  # by so much; exact, as a power of two
RANGES = """
SELECT {sent} FROM unnest(%(runs)s::bigint[], %(after)s::int[], %(until)s::int[]) WITH ORDINALITY AS wanted(run_id, after, until, number)
CROSS JOIN LATERAL (
    SELECT
        (step - %(low)s)::bigint * %(parts)s / %(span)s AS place,
        count(*) AS points,
        coalesce(sum(value) FILTER (WHERE abs(value) < 1e290::float8), 0) AS total,
        coalesce(sum(value / {large}) FILTER (WHERE abs(value) >= 1e290::float8), 0) AS large,
        sum(date_part('epoch', time) - %(since)s) AS seconds
    FROM (
        SELECT step, value, time FROM experiments_metricpoint
        WHERE run_id = wanted.run_id AND key = %(key)s AND value IS NOT NULL AND step > wanted.after AND step <= wanted.until
        UNION ALL
        SELECT point.step, point.value, point.time FROM experiments_metricstretch AS stretch
        CROSS JOIN LATERAL (
            SELECT width_bucket(wanted.after, steps) + 1 AS first, width_bucket(wanted.until, steps) AS last
        ) AS part
        CROSS JOIN LATERAL unnest(
            steps[part.first:part.last], numbers[part.first:part.last], times[part.first:part.last]
        ) AS point(step, value, time)
        WHERE stretch.run_id = wanted.run_id AND stretch.key = %(key)s AND stretch.first_step <= wanted.until
            AND stretch.first_step >= coalesce((
                SELECT max(first_step) FROM experiments_metricstretch
                WHERE run_id = wanted.run_id AND key = %(key)s AND first_step <= greatest(wanted.after, 0)
            ), 0)
    ) AS point
    GROUP BY place
) AS found
""".replace("{sent}", binary_rows.sent(RANGES_CELLS)).replace("{large}", str(LARGE))
TYPICAL = """
WITH newest AS (
    SELECT run.id, run.recipe, row_number() OVER (PARTITION BY run.recipe ORDER BY run.id DESC) AS back
    FROM experiments_run AS run JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id
    WHERE experiment.workspace_id = %(workspace)s AND run.first_metric_at IS NOT NULL
), medians AS (
    SELECT newest.recipe, percentile_cont(0.5) WITHIN GROUP (ORDER BY found.value) AS median
    FROM newest CROSS JOIN LATERAL ({found}) AS found
    WHERE newest.back <= %(most)s
    GROUP BY newest.recipe, newest.id
)
SELECT recipe, percentile_cont(0.5) WITHIN GROUP (ORDER BY median), count(*) FROM medians GROUP BY recipe
""".replace("{found}", ALL.format(run="newest.id", key="%(key)s"))
AVERAGES = """
SELECT asked.key, avg(found.value)
FROM unnest(%(keys)s::text[]) AS asked(key) CROSS JOIN LATERAL ({found}) AS found GROUP BY asked.key
""".replace("{found}", ALL.format(run="%(run)s", key="asked.key"))
HISTOGRAMS = """
SELECT step, histogram FROM (
    SELECT step, histogram, row_number() OVER (ORDER BY step DESC) - 1 AS back, count(*) OVER () AS n
    FROM experiments_metricpoint WHERE run_id = %(run)s AND key = %(key)s AND histogram IS NOT NULL
) AS found
WHERE back %% greatest(ceil(n::numeric / %(most)s)::int, 1) = 0
ORDER BY step
"""

"""The statements of `points`, which say how points lie in the database."""

# For each run a loose scan of the index (run, key, step): from key to key, and of each the last step.
NEWEST = """
SELECT wanted.run_id, latest.key, latest.step, latest.time, latest.value, latest.not_finite, latest.has_histogram
FROM unnest(%(runs)s::bigint[]) AS wanted(run_id)
CROSS JOIN LATERAL (
    WITH RECURSIVE keys AS (
        (SELECT key FROM experiments_metricpoint WHERE run_id = wanted.run_id ORDER BY key LIMIT 1)
        UNION ALL
        SELECT (
            SELECT key FROM experiments_metricpoint WHERE run_id = wanted.run_id AND key > keys.key ORDER BY key LIMIT 1
        ) FROM keys WHERE keys.key IS NOT NULL
    )
    SELECT keys.key, newest.* FROM keys CROSS JOIN LATERAL (
        SELECT step, time, value, not_finite, histogram IS NOT NULL AS has_histogram FROM experiments_metricpoint
        WHERE run_id = wanted.run_id AND key = keys.key ORDER BY step DESC LIMIT 1
    ) AS newest
) AS latest
ORDER BY wanted.run_id, latest.key
"""
COPIED = """
COPY (
    SELECT wanted.place, found.step, found.value, found.time
    FROM unnest(%(places)s::int[], %(keys)s::text[], %(after)s::int[]) AS wanted(place, key, after)
    CROSS JOIN LATERAL (
        SELECT step, value, time FROM experiments_metricpoint
        WHERE run_id = %(run)s AND key = wanted.key AND step > wanted.after AND value IS NOT NULL
        ORDER BY step LIMIT %(most)s
    ) AS found
) TO STDOUT (FORMAT binary)
"""
SUMMARIES = """
SELECT key, (array_agg(value ORDER BY step DESC))[1], min(value), max(value), max(step)
FROM experiments_metricpoint WHERE run_id = %(run)s AND key = ANY(%(keys)s) AND value IS NOT NULL GROUP BY key
"""
# Every n-th point of each run, n chosen so that at most `most` remain; the newest is always among them.
SPARKS = """
SELECT run_id, value FROM (
    SELECT run_id, step, value,
        row_number() OVER (PARTITION BY run_id ORDER BY step DESC) - 1 AS back,
        count(*) OVER (PARTITION BY run_id) AS n
    FROM unnest(%(runs)s::bigint[], %(keys)s::text[]) AS wanted(run_id, key)
        JOIN experiments_metricpoint USING (run_id, key)
    WHERE value IS NOT NULL
) AS found
WHERE back %% greatest(ceil(n::numeric / %(most)s)::int, 1) = 0
ORDER BY run_id, step
"""
# the mean of each run in each of so many stretches of steps; the same stretches for all runs, so that seeds can be laid together
MEANS = """
WITH points AS (
    SELECT run_id, step, value, extract(epoch FROM time)::float8 AS at, min(step) OVER () AS low, max(step) OVER () AS high
    FROM experiments_metricpoint WHERE run_id = ANY(%(runs)s) AND key = %(key)s AND value IS NOT NULL
)
SELECT run_id, place, avg(value), min(at), avg(at), low, high - low + 1 FROM (
    SELECT *, CASE WHEN high - low + 1 <= %(points)s THEN step - low
        ELSE (step - low)::bigint * %(points)s / (high - low + 1) END AS place FROM points
) AS placed
GROUP BY run_id, place, low, high ORDER BY run_id, place
"""
TYPICAL = """
WITH newest AS (
    SELECT run.id, run.recipe, row_number() OVER (PARTITION BY run.recipe ORDER BY run.id DESC) AS back
    FROM experiments_run AS run JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id
    WHERE experiment.workspace_id = %(workspace)s AND run.first_metric_at IS NOT NULL
), medians AS (
    SELECT newest.recipe, percentile_cont(0.5) WITHIN GROUP (ORDER BY point.value) AS median
    FROM newest JOIN experiments_metricpoint AS point ON point.run_id = newest.id AND point.key = %(key)s
    WHERE newest.back <= %(most)s AND point.value IS NOT NULL
    GROUP BY newest.recipe, newest.id
)
SELECT recipe, percentile_cont(0.5) WITHIN GROUP (ORDER BY median), count(*) FROM medians GROUP BY recipe
"""
HISTOGRAMS = """
SELECT step, histogram FROM (
    SELECT step, histogram, row_number() OVER (ORDER BY step DESC) - 1 AS back, count(*) OVER () AS n
    FROM experiments_metricpoint WHERE run_id = %(run)s AND key = %(key)s AND histogram IS NOT NULL
) AS found
WHERE back %% greatest(ceil(n::numeric / %(most)s)::int, 1) = 0
ORDER BY step
"""

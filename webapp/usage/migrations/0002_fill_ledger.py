# ruff: noqa: S608  the statements are built from constants
"""What runs, jobs and judges of runs have cost before there was a ledger, from what stands at their rows.

A run has one span, of attempt 0, with the time of all its attempts that are over: as if they had followed one another without a wait up to
its end. If its process runs now, the present attempt has its own. A job that was tried again has a span that is not measured, because
nobody wrote down when its attempts ended. A judge's calls are in the month in which the run ended, or in the present one.
"""

from django.db import migrations

AT_A_TIME = 5_000  # ids; each batch is a transaction, and may be done twice
WORKSPACE = "JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id"
# what was said of a run's device tells whether it had a GPU, and not how many: one is the least
ON_GPU = """CASE WHEN run.learner_device LIKE 'the processor%%' THEN 0
    WHEN run.learner_device = '' OR run.learner_device LIKE '%% of the Ray cluster' THEN NULL ELSE 1 END"""
TOLD = "run.learner_device <> '' AND run.learner_device NOT LIKE '%% of the Ray cluster'"
COLUMNS = "workspace_id, kind, work, attempt, place, person_id, began, ended, gpus, told, measured"
FILLS = {
    "experiments_run": (
        f"""
        INSERT INTO usage_workspan ({COLUMNS})
        SELECT experiment.workspace_id, 'run', run.id, 0, run.experiment_id, run.created_by_id, past.ended - run.under_way, past.ended,
            {ON_GPU}, {TOLD}, true
        FROM experiments_run AS run {WORKSPACE}
        CROSS JOIN LATERAL (SELECT coalesce(run.begun_at, run.ended_at, run.state_at) AS ended) AS past
        WHERE run.id > %s AND run.id <= %s AND run.recipe <> 'logged' AND (
            run.under_way > interval '0' OR (run.begun_at IS NULL AND run.started_at IS NOT NULL)
        )
        ON CONFLICT DO NOTHING
        """,
        f"""
        INSERT INTO usage_workspan ({COLUMNS})
        SELECT experiment.workspace_id, 'run', run.id, run.attempt, run.experiment_id, run.created_by_id, run.begun_at, NULL,
            {ON_GPU}, {TOLD}, true
        FROM experiments_run AS run {WORKSPACE}
        WHERE run.id > %s AND run.id <= %s AND run.recipe <> 'logged' AND run.begun_at IS NOT NULL
        ON CONFLICT DO NOTHING
        """,
        f"""
        INSERT INTO usage_monthlyuse (
            workspace_id, month, kind, work, place, person_id, endpoint_id, calls, prompt_tokens, completion_tokens, other_tokens, money,
            untold, unpriced
        )
        SELECT experiment.workspace_id, date_trunc('month', coalesce(run.ended_at, now()) AT TIME ZONE 'UTC')::date, 'run', run.id,
            run.experiment_id, run.created_by_id, version.endpoint_id, sum(asked.calls), 0, 0, sum(asked.tokens), sum(asked.money), 0,
            sum(CASE WHEN asked.money = 0 AND (endpoint.price_prompt IS NULL OR endpoint.price_completion IS NULL)
                THEN asked.calls ELSE 0 END)
        FROM experiments_runjudge AS asked JOIN experiments_run AS run ON run.id = asked.run_id {WORKSPACE}
        JOIN judging_judgeversion AS version ON version.id = asked.version_id
        JOIN inference_endpoint AS endpoint ON endpoint.id = version.endpoint_id
        WHERE run.id > %s AND run.id <= %s AND asked.calls > 0
        GROUP BY experiment.workspace_id, run.id, version.endpoint_id
        ON CONFLICT DO NOTHING
        """,
    ),
    "weights_weightsjob": (
        f"""
        INSERT INTO usage_workspan ({COLUMNS})
        SELECT job.workspace_id, 'job', job.id, CASE WHEN job.attempt = 1 THEN 1 ELSE 0 END, NULL, job.created_by_id, job.started_at,
            CASE WHEN job.attempt = 1 AND over THEN greatest(job.started_at, coalesce(job.ended_at, job.state_at)) END,
            coalesce((job.params -> 'resources' ->> 'gpus')::float8, 0), coalesce(job.used ->> 'device', '') <> '', job.attempt = 1
        FROM weights_weightsjob AS job
        CROSS JOIN LATERAL (SELECT job.state IN ('stopped', 'finished', 'failed') AS over) AS at_rest
        WHERE job.id > %s AND job.id <= %s AND job.started_at IS NOT NULL
        ON CONFLICT DO NOTHING
        """,
        f"""
        INSERT INTO usage_workspan ({COLUMNS})
        SELECT job.workspace_id, 'job', job.id, job.attempt, NULL, job.created_by_id, job.state_at, NULL,
            coalesce((job.params -> 'resources' ->> 'gpus')::float8, 0), false, true
        FROM weights_weightsjob AS job
        WHERE job.id > %s AND job.id <= %s AND job.attempt > 1 AND job.state IN ('running', 'stopping') AND job.started_at IS NOT NULL
        ON CONFLICT DO NOTHING
        """,
    ),
}


def fill(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        for table, statements in FILLS.items():
            cursor.execute(f"SELECT coalesce(max(id), 0) FROM {table}")
            (last,) = cursor.fetchone()
            for after in range(0, last, AT_A_TIME):
                for statement in statements:
                    cursor.execute(statement, [after, after + AT_A_TIME])


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("usage", "0001_ledger"),
        ("experiments", "0052_spans_of_steps"),
        ("weights", "0005_places_in_the_line"),
        ("judging", "0001_initial"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

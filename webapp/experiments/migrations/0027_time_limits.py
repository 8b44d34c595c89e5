from datetime import timedelta

from django.db import migrations, models

# how long runs have run until now stands in the audit log, from each state to the next; what runs at the moment runs on
LASTED = """
UPDATE experiments_run SET under_way = told.lasted
FROM (
    SELECT object_id, SUM(GREATEST(following - created_at, INTERVAL '0')) AS lasted
    FROM (
        SELECT object_id, action, created_at, LEAD(created_at) OVER (PARTITION BY object_id ORDER BY id) AS following
        FROM core_auditentry
        WHERE object_type = 'run' AND action IN (
            'run.launch', 'run.queued', 'run.starting', 'run.running', 'run.paused', 'run.stopping', 'run.stopped', 'run.finished', 'run.failed'
        )
    ) AS entries
    WHERE action IN ('run.running', 'run.paused', 'run.stopping') AND following IS NOT NULL
    GROUP BY object_id
) AS told
WHERE told.object_id = experiments_run.id AND experiments_run.recipe <> 'logged'
"""
BEGUN = """
UPDATE experiments_run SET begun_at = state_at WHERE state IN ('running', 'paused', 'stopping') AND recipe <> 'logged'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0005_audit_of_an_object"),
        ("experiments", "0026_stop_by"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="begun_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="time_limit",
            field=models.DurationField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="under_way",
            field=models.DurationField(db_default=models.Value(timedelta()), default=timedelta),
        ),
        migrations.RunSQL(LASTED, migrations.RunSQL.noop),
        migrations.RunSQL(BEGUN, migrations.RunSQL.noop),
    ]

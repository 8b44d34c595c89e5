"""Jobs stand in the line with the runs: since when they count as asked for, and how urgent they are.

One that waited already, is under way or over counts as asked for when it was made. One that was made and never given its items waits for nothing.
"""

from django.db import migrations, models

ASKED = """
UPDATE weights_weightsjob SET asked_at = created_at
WHERE NOT (state = 'queued' AND next_try_at IS NULL AND ray_job_id = '')
"""


class Migration(migrations.Migration):
    dependencies = [
        ("weights", "0004_tasks_of_claims"),
    ]

    operations = [
        migrations.AddField(
            model_name="weightsjob",
            name="asked_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="weightsjob",
            name="priority",
            field=models.SmallIntegerField(choices=[(-1, "Low"), (0, "Normal"), (1, "High")], db_default=0, default=0),
        ),
        migrations.RunSQL(ASKED, migrations.RunSQL.noop),
    ]

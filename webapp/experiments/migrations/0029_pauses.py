from django.db import migrations, models

# until people could pause runs, one was called so whose process waited for something: now it is blocked
BLOCKED = "UPDATE experiments_run SET state = 'blocked' WHERE state = 'paused'"
BACK = "UPDATE experiments_run SET state = 'paused' WHERE state = 'blocked'"


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0028_stalled"),
    ]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="state",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("starting", "Starting"),
                    ("running", "Running"),
                    ("blocked", "Blocked"),
                    ("pausing", "Pausing"),
                    ("paused", "Paused"),
                    ("stopping", "Stopping"),
                    ("stopped", "Stopped"),
                    ("finished", "Finished"),
                    ("failed", "Failed"),
                ],
                default="queued",
                max_length=10,
            ),
        ),
        migrations.RunSQL(BLOCKED, BACK),
    ]

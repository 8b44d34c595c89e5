"""A project stores why its tasks could not be made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0007_reason_of_changed_answers"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="tasks_problem",
            field=models.CharField(blank=True, max_length=500),
        ),
    ]

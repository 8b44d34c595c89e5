"""An evaluation's jobs stand in the line with the runs, where the evaluation was asked for."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluation", "0006_lineage_is_indexed"),
    ]

    operations = [
        migrations.AddField(
            model_name="evaluation",
            name="asked_at",
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddField(
            model_name="evaluation",
            name="priority",
            field=models.SmallIntegerField(choices=[(-1, "Low"), (0, "Normal"), (1, "High")], db_default=0, default=0),
        ),
        migrations.RunSQL("UPDATE evaluation_evaluation SET asked_at = created_at", migrations.RunSQL.noop),
    ]

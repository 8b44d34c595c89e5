import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

# Points that are there stay rows. New ones are packed into stretches; the view has both.
VIEW = """
CREATE VIEW experiments_point AS
SELECT run_id, key, step, value, not_finite, histogram, time FROM experiments_metricpoint
UNION ALL
SELECT stretch.run_id, stretch.key, point.step, point.value, '', NULL, point.time
FROM experiments_metricstretch AS stretch
CROSS JOIN LATERAL unnest(stretch.steps, stretch.numbers, stretch.times) AS point(step, value, time)
"""
# an older version reads rows alone; one that is there already was written by it
ROWS_AGAIN = """
INSERT INTO experiments_metricpoint (run_id, key, step, time, value)
SELECT stretch.run_id, stretch.key, point.step, point.time, point.value
FROM experiments_metricstretch AS stretch
CROSS JOIN LATERAL unnest(stretch.steps, stretch.numbers, stretch.times) AS point(step, value, time)
ON CONFLICT (run_id, key, step) DO NOTHING;
DROP VIEW experiments_point
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0040_runs_together")]

    operations = [
        migrations.CreateModel(
            name="MetricStretch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=250)),
                ("first_step", models.PositiveIntegerField()),
                ("last_step", models.PositiveIntegerField()),
                ("steps", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ("numbers", django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                ("times", django.contrib.postgres.fields.ArrayField(base_field=models.DateTimeField(), size=None)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="stretches", to="experiments.run"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("run", "key", "first_step"), name="one_stretch_from_a_step")
                ],
            },
        ),
        migrations.RunSQL(VIEW, ROWS_AGAIN),
        migrations.CreateModel(
            name="Point",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "key", "step", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("key", models.CharField(max_length=250)),
                ("step", models.PositiveIntegerField()),
                ("value", models.FloatField(null=True)),
                ("not_finite", models.CharField(max_length=9)),
                ("histogram", models.JSONField(null=True)),
                ("time", models.DateTimeField()),
            ],
            options={"managed": False},
        ),
    ]

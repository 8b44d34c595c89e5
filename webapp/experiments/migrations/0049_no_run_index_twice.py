import django.db.models.deletion
from django.db import migrations, models

# As in 0044: a unique constraint of each table begins with the run, and a change of the field would make the foreign key again
DROPPED = """
DROP INDEX IF EXISTS experiments_rollout_run_id_6a6683d3;
DROP INDEX IF EXISTS experiments_artifact_run_id_c6efad5b;
"""
AGAIN = """
CREATE INDEX experiments_rollout_run_id_6a6683d3 ON experiments_rollout (run_id);
CREATE INDEX experiments_artifact_run_id_c6efad5b ON experiments_artifact (run_id);
"""


def _run(related_name: str) -> models.ForeignKey:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to="experiments.run",
    )


class Migration(migrations.Migration):
    dependencies = [("experiments", "0048_charts_of_people")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(DROPPED, AGAIN)],
            [
                migrations.AlterField(model_name="rollout", name="run", field=_run("rollouts")),
                migrations.AlterField(model_name="artifact", name="run", field=_run("artifacts")),
            ],
        ),
    ]

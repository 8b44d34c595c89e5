import django.db.models.deletion
from django.db import migrations, models

# Each table has an index that begins with the run and goes on. Removed by name, because a change of the field would make the foreign key
# again and read all rows for it.
DROPPED = """
DROP INDEX IF EXISTS experiments_logline_run_id_938e88cb;
DROP INDEX IF EXISTS experiments_metriclevel_run_id_881cad13;
DROP INDEX IF EXISTS experiments_metricpoint_run_id_ddd5841c;
DROP INDEX IF EXISTS experiments_metricstretch_run_id_1963ae0f;
"""
AGAIN = """
CREATE INDEX experiments_logline_run_id_938e88cb ON experiments_logline (run_id);
CREATE INDEX experiments_metriclevel_run_id_881cad13 ON experiments_metriclevel (run_id);
CREATE INDEX experiments_metricpoint_run_id_ddd5841c ON experiments_metricpoint (run_id);
CREATE INDEX experiments_metricstretch_run_id_1963ae0f ON experiments_metricstretch (run_id);
"""


def _run(related_name: str) -> models.ForeignKey:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to="experiments.run",
    )


class Migration(migrations.Migration):
    dependencies = [("experiments", "0043_links_show_reports")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(DROPPED, AGAIN)],
            [
                migrations.AlterField(model_name="logline", name="run", field=_run("log_lines")),
                migrations.AlterField(model_name="metriclevel", name="run", field=_run("levels")),
                migrations.AlterField(model_name="metricpoint", name="run", field=_run("points")),
                migrations.AlterField(model_name="metricstretch", name="run", field=_run("stretches")),
            ],
        ),
    ]

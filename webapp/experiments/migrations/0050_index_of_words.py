import django.db.models.deletion
from django.db import migrations, models

# Workers index the rollouts that are there, as they do with new ones: no row of them is read here.
DUE = """
UPDATE experiments_run SET words_due = TRUE
WHERE EXISTS (SELECT FROM experiments_rollout AS rollout WHERE rollout.run_id = experiments_run.id)
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0049_no_run_index_twice")]

    operations = [
        migrations.CreateModel(
            name="WordBlock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("first", models.BigIntegerField()),
                ("last", models.BigIntegerField()),
                ("size", models.PositiveIntegerField()),
                ("hits", models.PositiveIntegerField()),
                ("places", models.BinaryField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="word_blocks",
                        to="experiments.run",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "first"), name="one_word_block_from_a_rollout")],
            },
        ),
        migrations.CreateModel(
            name="BlockWords",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "block_id", "number", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.IntegerField()),
                ("packed", models.BinaryField()),
                (
                    "block",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="words",
                        to="experiments.wordblock",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="words_due",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name="rollout",
            name="stored_again",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("words_due", True)), fields=["id"], name="runs_to_index"),
        ),
        migrations.RunSQL(DUE, migrations.RunSQL.noop),
    ]

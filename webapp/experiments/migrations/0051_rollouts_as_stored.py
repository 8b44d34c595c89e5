from django.db import migrations, models
from django.db.models.functions import Coalesce

# Made while rollouts can be written, outside a transaction. An attempt that is cut off leaves an index that is not valid: the next one
# begins anew.
DROP = "DROP INDEX CONCURRENTLY IF EXISTS rollouts_as_stored"
CREATE = """
CREATE INDEX CONCURRENTLY rollouts_as_stored ON experiments_rollout (run_id, (COALESCE(stored_again, id)))
"""
STORED = Coalesce("stored_again", "id", output_field=models.BigIntegerField())


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("experiments", "0050_index_of_words")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(DROP, migrations.RunSQL.noop), migrations.RunSQL(CREATE, DROP)],
            [
                migrations.AddIndex(
                    model_name="rollout",
                    index=models.Index(models.F("run"), STORED, name="rollouts_as_stored"),
                )
            ],
        ),
    ]

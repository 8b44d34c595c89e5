import django.contrib.postgres.indexes
from django.db import migrations

# A list of pending entries grew with every row that was added, and each step of a walk read all of it anew
AT_ONCE = """
ALTER INDEX version_lineage SET (fastupdate = off);
SELECT gin_clean_pending_list('version_lineage');
"""
LATER = "ALTER INDEX version_lineage RESET (fastupdate)"


class Migration(migrations.Migration):
    dependencies = [("datasets", "0015_lineage_is_indexed")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(AT_ONCE, LATER)],
            [
                migrations.RemoveIndex(model_name="datasetversion", name="version_lineage"),
                migrations.AddIndex(
                    model_name="datasetversion",
                    index=django.contrib.postgres.indexes.GinIndex(
                        fields=["lineage"], name="version_lineage", opclasses=["jsonb_path_ops"], fastupdate=False
                    ),
                ),
            ],
        ),
    ]

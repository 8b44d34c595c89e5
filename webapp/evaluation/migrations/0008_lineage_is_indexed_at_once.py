import django.contrib.postgres.indexes
from django.db import migrations

# A list of pending entries grew with every row that was added, and each step of a walk read all of it anew
AT_ONCE = """
ALTER INDEX evaluation_config SET (fastupdate = off);
SELECT gin_clean_pending_list('evaluation_config');
"""
LATER = "ALTER INDEX evaluation_config RESET (fastupdate)"


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0007_places_in_the_line")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(AT_ONCE, LATER)],
            [
                migrations.RemoveIndex(model_name="evaluation", name="evaluation_config"),
                migrations.AddIndex(
                    model_name="evaluation",
                    index=django.contrib.postgres.indexes.GinIndex(
                        fields=["config"], name="evaluation_config", opclasses=["jsonb_path_ops"], fastupdate=False
                    ),
                ),
            ],
        ),
    ]

from django.db import migrations

# Means were added in any order, so their last bits are those of another order. Workers compute them again after the start.
ALL = """
INSERT INTO experiments_familychange (experiment_id, kin)
SELECT DISTINCT experiment_id, CASE WHEN family = '' THEN id::text ELSE family END FROM experiments_run
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0069_all_families_changed")]

    operations = [migrations.RunSQL(ALL, migrations.RunSQL.noop)]

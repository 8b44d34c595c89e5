from django.db import migrations

# No means are stored yet. Workers compute them after the start, and until then readers compute them as before. The triggers are there
# already, so no run that comes meanwhile is left out, and this statement locks no run.
ALL = """
INSERT INTO experiments_familychange (experiment_id, kin)
SELECT DISTINCT experiment_id, CASE WHEN family = '' THEN id::text ELSE family END FROM experiments_run
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0068_changes_of_families")]

    operations = [migrations.RunSQL(ALL, migrations.RunSQL.noop)]

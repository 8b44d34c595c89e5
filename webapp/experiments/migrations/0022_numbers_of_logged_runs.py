"""Programs elsewhere log params as texts: those that are numbers are found, sorted and compared as numbers."""

from django.db import migrations

NUMBERS = r"""
UPDATE experiments_runvalue AS value SET number = value.text::float8, text = NULL
FROM experiments_runcolumn AS known, experiments_run AS run
WHERE known.id = value.column_id AND known.source = 'config'
    AND run.id = value.run_id AND run.recipe = 'logged'
    AND value.number IS NULL AND length(value.text) <= 40
    AND value.text ~ '^[+-]?((0|[1-9][0-9]{0,14})(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$'
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0021_logged_runs")]

    operations = [migrations.RunSQL(NUMBERS, migrations.RunSQL.noop)]

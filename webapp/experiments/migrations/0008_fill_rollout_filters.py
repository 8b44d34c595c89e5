"""The filters of rollouts that were stored before they had columns."""

from django.db import migrations

FILL = """
UPDATE experiments_rollout SET
    excluded = COALESCE(content ->> 'excluded', '') <> '',
    part_values = COALESCE(content -> 'components', '{}') || COALESCE(
        (SELECT jsonb_object_agg(part ->> 'name', part -> 'value')
         FROM jsonb_array_elements(COALESCE(content -> 'parts', '[]')) AS part),
        '{}'
    )
"""


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0007_rollout_filters"),
    ]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]

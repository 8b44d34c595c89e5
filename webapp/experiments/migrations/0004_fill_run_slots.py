"""The models that runs name so far: the base of each, and the teacher of those that distil."""

from django.db import migrations

FILL = """
INSERT INTO experiments_runslot (run_id, role, path, model_id)
SELECT id, 'base', 'model.name', model_id FROM experiments_run
UNION ALL
SELECT id, 'teacher', 'objective.teacher', teacher_id FROM experiments_run WHERE teacher_id IS NOT NULL
ORDER BY 1, 2
"""


class Migration(migrations.Migration):
    dependencies = [("experiments", "0003_run_slots")]

    operations = [migrations.RunSQL(FILL, "DELETE FROM experiments_runslot")]

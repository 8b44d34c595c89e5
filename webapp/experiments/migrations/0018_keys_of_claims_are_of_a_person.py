"""The key of a launched study belongs to whoever sent it, as those of runs and evaluations do."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Whoever made the runs made the study. A key that one person has used in two workspaces stays with the first study.
FILL = """
UPDATE experiments_claimstudy study SET created_by_id = (
    SELECT run.created_by_id FROM experiments_claimrun part JOIN experiments_run run ON run.id = part.run_id
    WHERE part.study_id = study.id ORDER BY part.id LIMIT 1
);
UPDATE experiments_claimstudy study SET launch_key = NULL WHERE EXISTS (
    SELECT 1 FROM experiments_claimstudy earlier
    WHERE earlier.created_by_id = study.created_by_id AND earlier.launch_key = study.launch_key AND earlier.id < study.id
);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0011_former_removals"),
        ("experiments", "0017_reason_matchings"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="claimstudy", name="one_study_per_launch_key"),
        migrations.AddField(
            model_name="claimstudy",
            name="created_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="claimstudy",
            constraint=models.UniqueConstraint(
                fields=["created_by", "launch_key"], name="one_study_per_key_of_a_person"
            ),
        ),
    ]

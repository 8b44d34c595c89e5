"""How many processes a run has lost in a row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0011_project_of_graded_responses")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="losses",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        )
    ]

"""Which device trains a run, and which samples its responses."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0013_artifact_files")]

    operations = [
        migrations.AddField(
            model_name="run",
            name=name,
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        )
        for name in ("learner_device", "sampler_device")
    ]

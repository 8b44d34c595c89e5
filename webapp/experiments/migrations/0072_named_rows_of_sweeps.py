"""A sweep stores which rows its names of models and judges mean."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0071_means_of_levels"),
    ]

    operations = [
        migrations.AddField(
            model_name="sweep",
            name="named_rows",
            field=models.JSONField(default=dict),
        ),
    ]

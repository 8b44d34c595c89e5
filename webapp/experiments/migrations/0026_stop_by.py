from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0025_chains"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="stop_by",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]

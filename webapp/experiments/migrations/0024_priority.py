from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0023_sweeps"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="priority",
            field=models.SmallIntegerField(choices=[(-1, "Low"), (0, "Normal"), (1, "High")], db_default=0, default=0),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0013_more_selections"),
    ]

    operations = [
        migrations.AddField(
            model_name="importjob",
            name="unsaid",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
    ]

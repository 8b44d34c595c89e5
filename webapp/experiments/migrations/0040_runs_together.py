from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0038_claims_make_their_tasks"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="carried_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=80),
        ),
        migrations.AddField(
            model_name="sweep",
            name="together",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]

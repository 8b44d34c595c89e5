from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tracking", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="loggedrun",
            name="lost_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]

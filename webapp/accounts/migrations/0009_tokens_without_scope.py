from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_token_areas"),
    ]

    operations = [
        migrations.RemoveField(model_name="apitoken", name="scope"),
    ]

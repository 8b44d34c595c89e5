import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_workspace_time_outs")]

    operations = [
        migrations.CreateModel(
            name="FormerRemoval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.TextField()),
                ("digest", models.CharField(max_length=64)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="former_removals",
                        to="accounts.workspace",
                    ),
                ),
            ],
        ),
    ]

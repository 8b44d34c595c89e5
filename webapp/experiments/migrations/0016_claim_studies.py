"""Claims of papers, put to the test by ordinary runs."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0011_former_removals"), ("experiments", "0015_alarms")]

    operations = [
        migrations.CreateModel(
            name="ClaimStudy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("plan", models.CharField(max_length=40)),
                ("plan_digest", models.CharField(max_length=64)),
                ("launch_key", models.CharField(blank=True, max_length=64, null=True)),
                ("launch_digest", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="claim_studies",
                        to="accounts.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "launch_key"), name="one_study_per_launch_key")
                ],
            },
        ),
        migrations.CreateModel(
            name="ClaimRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("arm", models.CharField(max_length=40)),
                ("seed", models.PositiveIntegerField()),
                ("measures", models.JSONField(null=True)),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="claim", to="experiments.run"
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="experiments.claimstudy"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("study", "arm", "seed"), name="one_run_per_arm_and_seed")
                ],
            },
        ),
    ]

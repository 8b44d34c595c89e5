from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0003_audit_stays_and_is_sealed"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditSent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seal", models.BigIntegerField(default=0)),
                ("problem", models.CharField(blank=True, max_length=300)),
                ("at", models.DateTimeField(auto_now=True)),
            ],
        ),
    ]

from django.db import migrations, models

# as they were when tokens got them: a token of before keeps all that it could do
AREAS = (
    "account",
    "administration",
    "annotation",
    "datasets",
    "evaluation",
    "experiments",
    "judging",
    "models",
)


def fill(apps, schema_editor):
    tokens = apps.get_model("accounts", "ApiToken").objects
    for scope in ("read", "write"):
        tokens.filter(scope=scope).update(areas=dict.fromkeys(AREAS, scope))


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0007_erased_accounts"),
    ]

    operations = [
        migrations.AddField(model_name="apitoken", name="areas", field=models.JSONField(default=dict)),
        migrations.AddField(
            model_name="apitoken", name="last_used_from", field=models.CharField(blank=True, max_length=45)
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]

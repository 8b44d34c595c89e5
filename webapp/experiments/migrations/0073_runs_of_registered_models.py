"""Runs lead to their registered models again. A later version of the same folder took over the link of the version before it."""

from django.db import migrations

FOLDER, FILE = "files/", "file"


def free_file(Artifact, version):
    """The file of the version that leads to no model: its config.json if possible."""
    below = f"{FOLDER}{version.path}/" if version.path else FOLDER
    free = Artifact.objects.filter(run_id=version.row.run_id, role=FILE, path__startswith=below, registered=None)
    return free.filter(path=f"{below}config.json").first() or free.order_by("path").first()


def restore(apps, schema_editor):
    """A model that versions of several runs name keeps no link: nothing says from which of the runs it comes."""
    Artifact, FamilyVersion = apps.get_model("experiments", "Artifact"), apps.get_model("tracking", "FamilyVersion")
    named = FamilyVersion.objects.exclude(model=None).exclude(row=None)
    runs = {}
    for model, run in named.values_list("model_id", "row__run_id"):
        runs.setdefault(model, set()).add(run)
    linked = set(Artifact.objects.filter(registered__in=runs).values_list("registered_id", flat=True))
    for version in named.select_related("row").order_by("pk"):
        if version.model_id in linked or len(runs[version.model_id]) > 1:
            continue
        if file := free_file(Artifact, version):
            Artifact.objects.filter(pk=file.pk).update(registered_id=version.model_id)
            linked.add(version.model_id)


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0072_named_rows_of_sweeps"),
        ("inference", "0006_aliases_and_stages"),
        ("tracking", "0004_metrics_of_models"),
    ]

    operations = [
        migrations.RunPython(restore, migrations.RunPython.noop),
    ]

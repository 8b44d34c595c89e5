from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0004_audit_sent"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["object_type", "object_id", "-id"], name="audit_of_an_object"),
        ),
    ]

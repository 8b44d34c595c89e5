from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("experiments", "0004_fill_run_slots")]

    operations = [migrations.RemoveField(model_name="run", name="teacher")]

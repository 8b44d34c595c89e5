from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0070_means_of_families_again")]

    operations = [
        migrations.AddField(
            model_name="metriclevel",
            name="means",
            field=models.BinaryField(null=True),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounting", "0012_validate_constraints")]
    operations = [
        migrations.AlterField("hostclient", "cpid", models.CharField(max_length=80, verbose_name="cross-project id")),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0014_work_asked_at")]
    operations = [
        migrations.AddField("hostrecord", "repeated_times", models.SmallIntegerField(db_default=0, default=0)),
    ]

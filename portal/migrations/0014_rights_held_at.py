from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("portal", "0013_work_given_up"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="rights_held_at",
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name="rights held since"),
        ),
    ]

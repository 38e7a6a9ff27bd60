from django.db import migrations, models

import portal.models


class Migration(migrations.Migration):
    dependencies = [("portal", "0005_deletion_asked_at")]

    operations = [
        migrations.AddField(
            "user",
            "cross_project_id",
            models.CharField(default=portal.models.new_token, editable=False, max_length=32),
        ),
        # A default is worked out once for all rows that there are: each needs its own.
        migrations.RunSQL(
            "UPDATE portal_user SET cross_project_id = replace(gen_random_uuid()::text, '-', '')",
            migrations.RunSQL.noop,
        ),
    ]

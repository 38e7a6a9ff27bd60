"""An index for the limit of mails to lapsed volunteers; concurrently, as the table may be long."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("portal", "0017_lapsed_mails"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="sentmail",
            index=models.Index(fields=["sent_at"], condition=models.Q(("kind", "lapsed")), name="sentmail_lapsed"),
        ),
    ]

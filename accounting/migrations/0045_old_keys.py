"""A new site does not get the keys that only the version before this one needs."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from accounting.ledger.old_keys import drop_old_keys


def drop_if_new(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if not apps.get_model("portal", "User")._default_manager.exists():
        drop_old_keys()


class Migration(migrations.Migration):
    atomic = False
    safe_because = "A site with accounts keeps the old keys until `manage.py drop_old_keys`"
    dependencies = [("accounting", "0044_keys_with_user")]
    operations = [migrations.RunPython(drop_if_new)]

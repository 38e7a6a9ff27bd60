"""A column for the user in each table of rows of computers, and a trigger that fills it for the version before this."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from accounting.ledger.old_keys import OF_HOSTS
from portal.upgrades.altering import alter

FUNCTION = """
CREATE OR REPLACE FUNCTION accounting_user_of_host() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT owner_id INTO NEW.user_id FROM portal_host WHERE id = NEW.host_id;
  RETURN NEW;
END $$
"""
COLUMN = "ALTER TABLE accounting_{name} ADD COLUMN IF NOT EXISTS user_id bigint"
# Also rows that the version before this one moves, when it merges computers, to one whose rows are filled already.
TRIGGER = """
CREATE OR REPLACE TRIGGER user_of_host BEFORE INSERT OR UPDATE OF host_id ON accounting_{name}
   FOR EACH ROW WHEN (NEW.user_id IS NULL) EXECUTE FUNCTION accounting_user_of_host()
"""
# The version before this one gives a record to another volunteer's computer by changing the computer alone.
OF_OTHER_HOST = """
CREATE OR REPLACE TRIGGER user_of_other_host BEFORE UPDATE OF host_id ON accounting_grantedtotal
   FOR EACH ROW WHEN (NEW.host_id <> OLD.host_id) EXECUTE FUNCTION accounting_user_of_host()
"""


def add_columns(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(FUNCTION)
    for name in OF_HOSTS:
        alter(f"accounting_{name}", COLUMN.format(name=name), TRIGGER.format(name=name))
    alter("accounting_grantedtotal", OF_OTHER_HOST)


class Migration(migrations.Migration):
    atomic = False
    safe_because = "The columns may be empty, and a trigger fills them in rows that the old version makes"
    dependencies = [("accounting", "0041_files_of_apps"), ("portal", "0031_host_and_owner_unique")]
    operations = [migrations.RunPython(add_columns)]

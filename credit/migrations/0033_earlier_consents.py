"""Consents that were in force when their history began: into it, with the time as far as it is known.

History cannot be taken back. Applied again after it was reversed, this leaves out whoever is in the history.
"""

from django.db import migrations

EARLIER = """
INSERT INTO portal_consentevent (user_id, kind, is_given, at, wording, language, origin)
SELECT user_id, 'statistics', true, changed_at, NULL::smallint, '', 'earlier' FROM credit_exportconsent given
WHERE exports_statistics
  AND NOT EXISTS (SELECT FROM portal_consentevent kept WHERE kept.user_id = given.user_id AND kept.kind = 'statistics')
 UNION ALL
-- When this one was given was not kept.
SELECT user_id, 'statistics_hosts', true, now(), NULL::smallint, '', 'earlier' FROM credit_exportconsent given
WHERE shows_hosts
  AND NOT EXISTS (SELECT FROM portal_consentevent kept WHERE kept.user_id = given.user_id AND kept.kind = 'statistics_hosts')
 ORDER BY 1, 2
"""


class Migration(migrations.Migration):
    dependencies = [
        ("credit", "0032_top_lists"),
        ("portal", "0027_consents"),
    ]

    operations = [migrations.RunSQL(EARLIER, migrations.RunSQL.noop)]

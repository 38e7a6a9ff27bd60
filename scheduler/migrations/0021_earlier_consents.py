"""Testers who agreed before the history of consents began: into it, with the time at which they did.

History cannot be taken back. Applied again after it was reversed, this leaves out whoever is in the history.
"""

from django.db import migrations

EARLIER = """
INSERT INTO portal_consentevent (user_id, kind, is_given, at, wording, language, origin)
SELECT user_id, 'testing', true, agreed_at, NULL::smallint, '', 'earlier' FROM scheduler_betatester given
WHERE NOT EXISTS (SELECT FROM portal_consentevent kept WHERE kept.user_id = given.user_id AND kept.kind = 'testing')
ORDER BY 1
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0020_texts"),
        ("portal", "0027_consents"),
    ]

    operations = [migrations.RunSQL(EARLIER, migrations.RunSQL.noop)]

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0004_room_in_host_records"),
        ("credit", "0009_version_totals"),
    ]

    operations = [
        migrations.RunSQL(
            """
UPDATE credit_appversion v SET total_credit = v.total_credit + a.credit, ngranted = v.ngranted + a.count
  FROM (SELECT app_version_id, count(facts->>'granted_credit') AS count,
               sum(greatest(coalesce((facts->>'granted_credit')::float8, 0), (facts->>'partial_credit')::float8))
               AS credit
          FROM scheduler_archivedtask WHERE app_version_id IS NOT NULL GROUP BY app_version_id) a
 WHERE v.id = a.app_version_id""",
            migrations.RunSQL.noop,
        ),
    ]

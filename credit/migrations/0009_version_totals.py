from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credit", "0008_queue_by_one_comparison"),
    ]

    operations = [
        migrations.AddField(
            model_name="appversion",
            name="total_credit",
            field=models.FloatField(default=0, editable=False, verbose_name="credit granted in all"),
        ),
        migrations.AddField(
            model_name="appversion",
            name="ngranted",
            field=models.BigIntegerField(default=0, editable=False, verbose_name="results granted"),
        ),
        # What was granted before there were these sums; the purged tasks' are added by their own app.
        migrations.RunSQL(
            """
UPDATE credit_appversion v SET total_credit = g.credit, ngranted = g.count
  FROM (SELECT app_version_id, count(granted_credit) AS count,
               sum(greatest(coalesce(granted_credit, 0), partial_credit)) AS credit
          FROM credit_result WHERE granted_credit IS NOT NULL OR partial_credit > 0 GROUP BY app_version_id) g
 WHERE v.id = g.app_version_id""",
            migrations.RunSQL.noop,
        ),
    ]

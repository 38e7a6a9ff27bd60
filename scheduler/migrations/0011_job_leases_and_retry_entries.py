import django.db.models.deletion
from django.db import migrations, models

RENAME_PERMISSION = """
UPDATE auth_permission p
   SET codename = split_part(p.codename, '_', 1) || '_{new}', name = replace(p.name, '{old_name}', '{new_name}')
  FROM django_content_type t
 WHERE t.id = p.content_type_id AND t.app_label = 'scheduler' AND p.codename LIKE '%\\_{old}'
"""


class Migration(migrations.Migration):
    """Tables get the words of the glossary: lease and retry queue."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("credit", "0014_how_a_version_is_started"),
        ("scheduler", "0010_trickle_function_moved"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="shelfblock", name="shelfblock_one_renter"),
        migrations.RenameModel(old_name="ShelfBlock", new_name="JobLease"),
        migrations.RenameField(model_name="joblease", old_name="renter", new_name="holder"),
        migrations.AddConstraint(
            model_name="joblease",
            constraint=models.UniqueConstraint(fields=("app", "block"), name="joblease_one_holder"),
        ),
        migrations.RemoveConstraint(model_name="setaside", name="setaside_once"),
        migrations.RenameModel(old_name="SetAside", new_name="RetryEntry"),
        migrations.AlterModelOptions(
            name="retryentry",
            options={
                "ordering": ["-since"],
                "verbose_name": "workunit to retry",
                "verbose_name_plural": "retry queue",
            },
        ),
        migrations.AlterField(
            model_name="retryentry",
            name="workunit",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="retry_entries",
                to="credit.workunit",
            ),
        ),
        migrations.AddConstraint(
            model_name="retryentry",
            constraint=models.UniqueConstraint(fields=("workunit", "step"), name="retryentry_once"),
        ),
        # Operators keep the permission to have a workunit tried again.
        *(
            migrations.RunSQL(
                RENAME_PERMISSION.format(old=old, new=new, old_name=old_name, new_name=new_name),
                RENAME_PERMISSION.format(old=new, new=old, old_name=new_name, new_name=old_name),
            )
            for old, new, old_name, new_name in (
                ("setaside", "retryentry", "workunit set aside", "workunit to retry"),
                ("shelfblock", "joblease", "shelf block", "job lease"),
            )
        ),
    ]

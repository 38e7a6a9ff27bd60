"""Operations of migrations that change what people read, and nothing in the database."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState
from django.db.models import Field


class AlterTexts(migrations.AlterField):
    """Labels, help texts, choices or validators of a field.

    Django builds the models of the migration's state anew for each field that it alters. For hundreds of texts this
    takes half of the time of a new site's `migrate`, and no operation on the database needs it.
    """

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """ValueError: the database would notice the change, too."""
        fields = state.models[app_label, self.model_name_lower].fields
        if _stored(fields[self.name]) != _stored(self.field):
            raise ValueError(f"{self.describe()}: changes the column, so it must be AlterField.")
        fields[self.name] = self.field

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Nothing changes."""

    database_backwards = database_forwards


def _stored(field: Field[Any, Any]) -> tuple[str, Any, dict[str, Any]]:
    """What of a field the database knows, or the rows that Django writes."""
    _, path, arguments, options = field.deconstruct()
    return path, arguments, {name: value for name, value in options.items() if name not in field.non_db_attrs}

"""The column by which a table of rows of computers can be split by user (docs/explanation/splitting.md)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.models import Host


class HostOwner(models.ForeignKey[Any, Any]):
    """The owner of the row's computer, who never changes; filled when a row is saved without.

    In the database, all unique keys of the table have it, and a key of both columns refers to the computer and its
    owner. Django's models name the shorter key where it has to be one column, for forms and the admin: numbers are
    unique on the whole site.
    """

    def __init__(self, **options: Any) -> None:
        options |= {"to": settings.AUTH_USER_MODEL, "on_delete": models.DO_NOTHING, "related_name": "+"}
        super().__init__(**options | {"db_index": False, "db_constraint": False, "editable": False})

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, arguments, options = super().deconstruct()
        for fixed in ("to", "on_delete", "related_name", "db_index", "db_constraint", "editable"):
            options.pop(fixed, None)
        return name, path, list(arguments), options

    def get_pk_value_on_save(self, instance: Any) -> int:
        """As a part of the primary key."""
        owner: int = instance.host.owner_id
        return owner

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        if getattr(model_instance, self.attname) is None:
            setattr(model_instance, self.attname, self.get_pk_value_on_save(model_instance))
        return super().pre_save(model_instance, add)


def of(host: Host) -> dict[str, Any]:
    """Conditions on rows of the computer, by which they are found on any primary."""
    return {"host": host, "user": host.owner_id}

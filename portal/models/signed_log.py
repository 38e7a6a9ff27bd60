"""The signed log: releases, changes of keys, and addresses of projects."""

from __future__ import annotations

from django.db import connection, models
from django.utils.translation import gettext_lazy as _


class SignedEntry(models.Model):
    """An entry of the signed log (`portal.audit.signed_log`); entries are only ever added.

    A database trigger refuses to change or delete one. ``signature``: of a statement with all other columns, including
    the previous statement's digest. ``person``: a number, as the log outlives accounts; 0: a command.
    """

    class Kind(models.TextChoices):
        RELEASE = "release", _("release")
        KEY = "key", _("code-signing key")
        ADDRESS = "address", _("address of a project")

    # 1, 2, 3 …, without gaps
    number = models.BigIntegerField(_("number"), primary_key=True)
    at = models.DateTimeField(_("at"))
    kind = models.CharField(_("kind"), max_length=16, choices=Kind)
    person = models.BigIntegerField(_("number of the person"))
    content = models.JSONField(_("content"))
    previous = models.CharField(_("digest of the entry before"), max_length=64, blank=True)
    digest = models.CharField(_("digest"), max_length=64)
    signature = models.CharField(_("signature"), max_length=88)

    class Meta:
        ordering = ["-number"]
        default_permissions = ("view",)
        verbose_name = _("entry of the signed log")
        verbose_name_plural = _("entries of the signed log")

    def __str__(self) -> str:
        return f"{self.number}: {self.get_kind_display()}"

    @classmethod
    def lock(cls) -> None:
        """Let nobody else add an entry until this transaction ends.

        Changes of a project that may add an entry call it before they lock the project or its addresses; releases and
        changes of the key call it when they have locked everything else. Otherwise a transaction that has added an
        entry and goes on could need a row of one that waits to add its own.
        """
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {cls._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")

"""Where the days of archived months are: files in a storage, outside the database (accounting/ledger/archive)."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint


class ArchivedMonth(models.Model):
    """A month whose days are in files. The row decides: with it, the days are there; without it, in PostgreSQL."""

    month = models.DateField(primary_key=True)
    rows = models.BigIntegerField()
    archived_at = models.DateTimeField()

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(month__day=1), name="archivedmonth_first_day"),
            CheckConstraint(condition=Q(rows__gte=0), name="archivedmonth_rows"),
        ]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}, archived"


class ArchivePart(models.Model):
    """A file with the days of a month of all volunteers whose numbers are in a range; a volunteer is in one at most."""

    month = models.ForeignKey(ArchivedMonth, models.CASCADE, related_name="parts", db_index=False)
    first_user = models.BigIntegerField()
    last_user = models.BigIntegerField()
    # In the storage "archive"
    name = models.CharField(max_length=100, unique=True)
    rows = models.PositiveIntegerField()
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["month", "first_user"], name="archivepart_once"),
            CheckConstraint(condition=Q(first_user__lte=F("last_user"), rows__gt=0), name="archivepart_range"),
        ]

    def __str__(self) -> str:
        return self.name


class ArchiveErasure(models.Model):
    """An erased account whose days have to be removed from the files of a month.

    Its number is kept until they are. Nobody reads them meanwhile, as nobody has that account.
    """

    pk = models.CompositePrimaryKey("month_id", "user_number")
    month = models.ForeignKey(ArchivedMonth, models.CASCADE, related_name="+", db_index=False)
    user_number = models.BigIntegerField()
    erased_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"account {self.user_number} in {self.month_id:%Y-%m}"

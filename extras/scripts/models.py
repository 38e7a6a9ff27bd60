"""Programs of the project's scientists that compare outputs, or receive those of finished workunits."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import CheckConstraint, Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.functions import FunctionKind
from extras.scripts import wire

MAX_SOURCE_CHARS: Final = 256 * 1024
MAX_SECS: Final = 120
MIN_MEMORY_MIB, MAX_MEMORY_MIB = 16, 4096
PREFIX: Final = "script:"
"""The prefix of a script's name where an app names a function."""


class Script(models.Model):
    """A program in any language that begins with ``#!``, its protocol, and its limits.

    Without a source nothing is run: another operator has not confirmed it yet.
    """

    class Kind(models.TextChoices):
        COMPARE = "compare", _("compares outputs")
        ASSIMILATE = "assimilate", _("receives outputs of finished workunits")

    class Protocol(models.TextChoices):
        LINES = "lines", _("lines of JSON")
        WORDS = "words", _("arguments and exit codes, as in BOINC’s scripts")

    name = models.CharField(
        _("name"),
        max_length=60,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", _("Use a–z, 0–9, _ and -, beginning with a–z or 0–9."))],
        help_text=_("Apps refer to the script by this name, so it cannot be changed later."),
    )
    kind = models.CharField(_("what it does"), max_length=10, choices=Kind)
    protocol = models.CharField(
        _("how it is called"),
        max_length=5,
        choices=Protocol,
        default=Protocol.LINES,
        help_text=_("docs/reference/scripts.md describes what the program reads and what it must answer."),
    )
    source = models.TextField(
        _("program"),
        max_length=MAX_SOURCE_CHARS,
        blank=True,
        help_text=_("The first line names an interpreter on the server, for example #!/usr/bin/env python3."),
    )
    words = models.CharField(
        _("arguments"),
        max_length=200,
        blank=True,
        help_text=_("Only for arguments and exit codes. Separated by spaces, for example: files files2."),
    )
    check_source = models.TextField(
        _("program that checks one result"),
        max_length=MAX_SOURCE_CHARS,
        blank=True,
        help_text=_("Only for arguments and exit codes. If empty, all results are compared."),
    )
    check_words = models.CharField(_("arguments of that program"), max_length=200, blank=True)
    max_secs = models.PositiveSmallIntegerField(
        _("time limit of a call (s)"),
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_SECS)],
    )
    max_memory_mib = models.PositiveSmallIntegerField(
        _("memory limit (MiB)"),
        default=256,
        validators=[MinValueValidator(MIN_MEMORY_MIB), MaxValueValidator(MAX_MEMORY_MIB)],
    )

    last_fault = models.CharField(_("last failure"), max_length=500, blank=True, editable=False)
    failed_at = models.DateTimeField(_("failed"), null=True, editable=False)
    rests_until = models.DateTimeField(_("not called until"), null=True, editable=False)

    class Meta:
        verbose_name = _("script")
        verbose_name_plural = _("scripts")
        ordering = ["name"]
        constraints = [
            CheckConstraint(condition=Q(max_secs__gte=1, max_secs__lte=MAX_SECS), name="script_secs_range"),
            CheckConstraint(
                condition=Q(max_memory_mib__gte=MIN_MEMORY_MIB, max_memory_mib__lte=MAX_MEMORY_MIB),
                name="script_memory_range",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Check that its programs and words fit its protocol. Raises ValidationError, by field."""
        errors = self._faults_of_programs()
        if self.protocol != self.Protocol.WORDS:
            for name in ("words", "check_source", "check_words"):
                if getattr(self, name):
                    errors[name] = gettext("Only for scripts that are asked by words.")
        elif self.kind != self.Kind.COMPARE and (self.check_source or self.check_words):
            errors["check_source"] = gettext("Only for scripts that compare outputs.")
        else:
            errors |= self._faults_of_words()
        if errors:
            raise ValidationError(errors)

    def _faults_of_programs(self) -> dict[str, str]:
        required = gettext("Begin with #! and the path of an interpreter, as in #!/usr/bin/env python3.")
        programs = {"source": self.source or "none", "check_source": self.check_source}
        return {name: required for name, text in programs.items() if text and not text.startswith("#!/")}

    def _faults_of_words(self) -> dict[str, str]:
        errors = {}
        for name, ask in (("words", self.kind), ("check_words", "check")):
            try:
                wire.words_of(ask, getattr(self, name))
            except ValueError as error:
                errors[name] = gettext("There is no such word. Available: %(words)s.") % {"words": str(error)}
        return errors

    @classmethod
    def of_kind(cls, kind: str) -> QuerySet[Script]:
        """Return those that apps may name in this field (`FunctionKind`)."""
        does = cls.Kind.COMPARE if kind == FunctionKind.COMPARISON else cls.Kind.ASSIMILATE
        is_known = kind in (FunctionKind.COMPARISON, FunctionKind.ASSIMILATION)
        return cls.objects.filter(kind=does).exclude(source="") if is_known else cls.objects.none()

    @property
    def function_kind(self) -> FunctionKind:
        """The field of apps that may name it."""
        return FunctionKind.COMPARISON if self.kind == self.Kind.COMPARE else FunctionKind.ASSIMILATION

    @property
    def function_name(self) -> str:
        return PREFIX + self.name

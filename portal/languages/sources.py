"""The source files of texts, by catalogue.

Each app has catalogues of its own: ``django`` for its modules and templates, ``djangojs`` for its scripts. A template
or script belongs to the app that its folder is named after, or to portal if there is no such app. An extra, which is
named by its path, has them in its own folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_EXTRAS: Final = tuple(sorted(f"extras/{path.parent.name}" for path in _ROOT.glob("extras/*/apps.py")))
APPS: Final = ("portal", "accounting", "credit", "scheduler", "emulator", *_EXTRAS)
DOMAINS: Final = ("django", "djangojs")
TEMPLATE_SUFFIXES: Final = frozenset({".html", ".txt"})
# Catalogues of other languages have only what volunteers see; the rest stays English.
WHOLE_LANGUAGES: Final = frozenset({"en", "de"})
# Pages of operators, and of submitters of jobs.
_NOT_FOR_VOLUNTEERS: Final = re.compile(
    r"(?:.*/)?(?:admin|admin_\w+)\.(?:py|html)|(?:.*/)?(?:admin|figures|dashboard|operators|maintenance|audit)/.*"
    r"|(?:.*/)?figures\.py|templates/unfold/.*|portal/languages/library_texts\.py|portal/requested_work/.*"
    r"|(?:templates/)?accounting/(?:project_setup|statistics)/.*|(?:templates/)?credit/(?:changes|previews)/.*"
    r"|credit/export/run\.py|scheduler/(?:releases/(?!testers)|programs/|submission/|files/|lanes/).*"
    r"|templates/scheduler/_?batch\w*\.html"
    r"|extras/(?:laboratory|central_factors|remote_jobs|moving_in|scripts|containers)/.*"
)
# Names and help texts of models' fields are shown on operators' forms only, except those of teams and computers.
_MODELS: Final = re.compile(r"(?:.*/)?(?:models/(?!teams|computers)\w+|\w*models)\.py")


@dataclass(frozen=True)
class Catalogue:
    """A catalogue: the texts of an app's pages (``django``) or of its scripts (``djangojs``)."""

    app: str
    domain: str

    def path(self, root: Path, language: str) -> Path:
        return root / self.app / "locale" / language / "LC_MESSAGES" / f"{self.domain}.po"


def places(apps: tuple[str, ...] = APPS) -> list[Catalogue]:
    return [Catalogue(app, domain) for app in apps for domain in DOMAINS]


def modules(root: Path, app: str) -> Iterator[Path]:
    """The app's Python modules, without migrations, which repeat former texts of the models."""
    for path in sorted((root / app).rglob("*.py")):
        if not {"migrations", "tests"} & set(path.relative_to(root).parts):
            yield path


def templates(root: Path, app: str) -> Iterator[Path]:
    for path in _of_app(root, "templates", app):
        if path.suffix in TEMPLATE_SUFFIXES:
            yield path


def scripts(root: Path, app: str) -> Iterator[Path]:
    for path in _of_app(root, "static", app):
        if path.suffix == ".js":
            yield path


def _of_app(root: Path, kind: str, app: str) -> Iterator[Path]:
    if app in _EXTRAS:
        yield from (path for path in sorted((root / app / kind).rglob("*")) if path.is_file())
        return
    folder = root / kind
    for path in sorted(folder.rglob("*")):
        top = path.relative_to(folder).parts[0]
        if path.is_file() and (top if top in APPS else "portal") == app:
            yield path


def is_for_volunteers(name: str) -> bool:
    """Whether volunteers see texts of this file. Of models they see choices only (`has_choices_alone`)."""
    return not _NOT_FOR_VOLUNTEERS.fullmatch(name)


def has_choices_alone(name: str) -> bool:
    """Whether volunteers see only the names of choices from this file, not those of fields."""
    return bool(_MODELS.fullmatch(name))

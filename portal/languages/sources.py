"""Which files have texts, by the catalogue that these belong to.

Each app has catalogues of its own: ``django`` for its modules and templates, ``djangojs`` for its scripts. A template
or script belongs to the app that its folder is named after, and to portal if there is no such app.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

APPS: Final = ("portal", "accounting", "credit", "scheduler", "emulator")
DOMAINS: Final = ("django", "djangojs")
TEMPLATE_SUFFIXES: Final = frozenset({".html", ".txt"})


@dataclass(frozen=True)
class Place:
    """A catalogue: the texts of an app's pages (``django``) or of its scripts (``djangojs``)."""

    app: str
    domain: str

    def path(self, root: Path, language: str) -> Path:
        return root / self.app / "locale" / language / "LC_MESSAGES" / f"{self.domain}.po"


def places(apps: tuple[str, ...] = APPS) -> list[Place]:
    return [Place(app, domain) for app in apps for domain in DOMAINS]


def modules(root: Path, app: str) -> Iterator[Path]:
    """The app's Python modules. Migrations repeat texts of the models, as they once were."""
    for path in sorted((root / app).rglob("*.py")):
        if "migrations" not in path.parts:
            yield path


def templates(root: Path, app: str) -> Iterator[Path]:
    for path in _of_app(root / "templates", app):
        if path.suffix in TEMPLATE_SUFFIXES:
            yield path


def scripts(root: Path, app: str) -> Iterator[Path]:
    for path in _of_app(root / "static", app):
        if path.suffix == ".js":
            yield path


def _of_app(folder: Path, app: str) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        top = path.relative_to(folder).parts[0]
        if path.is_file() and (top if top in APPS else "portal") == app:
            yield path

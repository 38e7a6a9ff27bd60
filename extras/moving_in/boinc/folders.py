"""The project's folder, as BOINC's server has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from extras.moving_in.engine import config
from extras.moving_in.engine.config import ProjectConfig
from extras.moving_in.engine.jobs import folder_of
from extras.moving_in.machinery.steps import Context


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """``root`` None: not given, so there are no files."""

    root: Path | None
    config: ProjectConfig

    def text(self, *parts: str) -> str | None:
        """A small file's content, if it is there."""
        if self.root is None or not (path := self.root.joinpath(*parts)).is_file():
            return None
        return path.read_text(encoding="utf-8", errors="replace")

    def download(self, name: str) -> Path | None:
        """A file that clients fetch, wherever it is."""
        return self._file("download", name)

    def upload(self, name: str) -> Path | None:
        """A file that a client has delivered, perhaps in part."""
        return self._file("upload", name)

    def _file(self, kind: str, name: str) -> Path | None:
        if self.root is None:
            return None
        said = self.config.values.get(f"{kind}_dir", "")
        folders = [Path(said)] if said.startswith("/") else []
        for folder in [self.root / kind, *folders]:
            for path in (folder / folder_of(name, self.config.fanout) / name, folder / name):
                if path.is_file():
                    return path
        return None


def of(context: Context) -> ProjectFolder:
    return _of(context.folder)


@lru_cache(maxsize=4)
def _of(root: Path | None) -> ProjectFolder:
    path = root / "config.xml" if root is not None else None
    text = path.read_text(encoding="utf-8", errors="replace") if path is not None and path.is_file() else ""
    return ProjectFolder(root, config.read(text))

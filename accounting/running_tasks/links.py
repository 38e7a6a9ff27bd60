"""The addresses of a project's pages about its tasks."""

from __future__ import annotations

from urllib.parse import quote

from accounting.models import Project


def web_base(project: Project) -> str:
    """Where a project, read with its profile, has its pages and web RPCs, as an operator has seen it."""
    profile = getattr(project, "profile", None)
    return base_of(project.master_url, profile.seen.get("web_rpc_url_base") if profile is not None else None)


def base_of(master_url: str, base: object) -> str:
    """``said``: what the project calls the base of its web RPCs, if anything."""
    if not isinstance(base, str) or not base.startswith(("http://", "https://")):
        return master_url
    return base if base.endswith("/") else f"{base}/"


def task_url(base: str, name: str) -> str:
    """The page of a task, at BOINC projects as at this site (credit/pages)."""
    return f"{base}result.php?result_name={quote(name, safe='')}"

"""The addresses of a project's pages about its tasks."""

from __future__ import annotations

from urllib.parse import quote

from accounting.models import Project


def web_base(project: Project) -> str:
    """Return the address of the pages and web RPCs of a project, read with its profile, as an operator has seen it."""
    profile = getattr(project, "profile", None)
    return base_of(project.master_url, profile.seen.get("web_rpc_url_base") if profile is not None else None)


def base_of(master_url: str, base: object) -> str:
    """``said``: the base address that the project states for its web RPCs, if any."""
    if not isinstance(base, str) or not base.startswith(("http://", "https://")):
        return master_url
    return base if base.endswith("/") else f"{base}/"


def task_url(base: str, name: str) -> str:
    """Return the page of a task, at BOINC projects as at this site (credit/pages)."""
    return f"{base}result.php?result_name={quote(name, safe='')}"

"""The addresses that BOINC clients may request, by the parts that an installation has."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from portal.clients.paths import ClientPath, by_path

_ACCOUNT_MANAGER: Final = (
    # A list of thousands of tasks at the end of a message must not keep the rest of it from being read.
    ClientPath("/rpc.php", "accounting.rpc.api.answer", "acct_mgr_reply", longest_bytes=32 * 1024 * 1024),
    ClientPath("/get_project_config.php", "portal.clients.web_rpc.project_config", "project_config"),
    ClientPath("/lookup_account.php", "portal.clients.web_rpc.look_up_account", "error"),
    ClientPath("/create_account.php", "portal.clients.web_rpc.create_account", "error"),
    # Where Science United has them
    ClientPath("/su_rpc.php", "accounting.projects.su_rpc.keywords", "error"),
    ClientPath("/su_host_ids.php", "accounting.projects.su_rpc.host_ids", "error"),
    ClientPath("/am_get_info.php", "scheduler.web_rpcs.api.am_get_info", "error"),
)
_WEB_RPCS: Final = (
    "am_get_info",
    "am_set_info",
    "am_set_host_info",
    "show_user",
    "show_host_detail",
    "apps",
    "app_versions",
    "team_lookup",
    "login_token_lookup",
    "result_status",
)
_PROJECT: Final = (
    # A client reports all its failed jobs at once, with their stderr. If a long message were refused, the client
    # would send all of it again, for ever.
    ClientPath(
        "/project/scheduler",
        "scheduler.rpc.api.answer",
        "scheduler_reply",
        body_bytes=16 * 1024 * 1024,
        longest_bytes=1024**3,
    ),
    ClientPath(
        "/project/file_upload_handler", "scheduler.files.upload_handler.answer", "data_server_reply", is_stream=True
    ),
    ClientPath("/project/get_project_config.php", "scheduler.rpc.api.project_config", "project_config"),
    ClientPath("/project/lookup_account.php", "portal.clients.web_rpc.look_up_account", "error"),
    ClientPath("/project/create_account.php", "portal.clients.web_rpc.create_account", "error"),
    *(ClientPath(f"/project/{name}.php", f"scheduler.web_rpcs.api.{name}", "error") for name in _WEB_RPCS),
)


def paths_of(rooms: Collection[str]) -> dict[str, ClientPath]:
    """The addresses by path; ``rooms``: as in the setting ROOMS."""
    account_manager = _ACCOUNT_MANAGER if "account_manager" in rooms else ()
    project = _PROJECT if "project" in rooms else ()
    return by_path(*account_manager, *project)

"""Django's settings for the replica."""

from __future__ import annotations

from typing import Any

from portal.environment import SettingError


def replica_database(found: dict[str, Any], primary_options: dict[str, Any]) -> dict[str, Any]:
    """``found``: of its URL. The primary's options, but a replica that does not answer is left sooner.

    Raises SettingError for several servers.
    """
    if "," in found["HOST"]:
        raise SettingError("Setting REPLICA_URL cannot be used: give one server, not several.")
    options = {
        # That server takes no writes.
        **{name: value for name, value in primary_options.items() if name != "target_session_attrs"},
        "keepalives_idle": 3,
        "keepalives_interval": 1,
        "keepalives_count": 3,
        "tcp_user_timeout": 5_000,
        "connect_timeout": 2,
        **found.get("OPTIONS", {}),
        "pool": {**primary_options["pool"], "min_size": 0, "timeout": 2, "reconnect_timeout": 2},
    }
    # So that nothing is written there after a promotion either.
    options["options"] = f"{options['options']} -c default_transaction_read_only=on"
    # For tests it is the primary by another name.
    return {**found, "OPTIONS": options, "TEST": {"MIRROR": "default"}}

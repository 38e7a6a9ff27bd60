#!/usr/bin/env python
"""Django's command line for this site."""

import os
import sys

# Commands that compute only. They get addresses that nobody connects to, so that the settings start no embedded server.
WITHOUT_SERVERS = ("credit_replay", "credit_report", "emulate")
NOWHERE = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "BROKER_URL": "redis://127.0.0.1:1/0",
    "CACHE_URL": "redis://127.0.0.1:1/1",
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    if len(sys.argv) > 1 and sys.argv[1] in WITHOUT_SERVERS:
        os.environ.update({name: url for name, url in NOWHERE.items() if not os.environ.get(name)})
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

"""System checks of the settings for files: values that contradict each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from portal.object_storage.options import BACKEND, Options


def _options(name: str = "default") -> Options | None:
    """The options of this storage, if it is object storage."""
    entry = settings.STORAGES[name]
    return entry["OPTIONS"]["options"] if entry["BACKEND"] == BACKEND else None


@checks.register()
def check_files(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Report settings for folders that are used with object storage, and the other way round."""
    options = _options()
    messages: list[CheckMessage] = []
    if options is not None and settings.DOWNLOAD_ACCEL_PREFIX:
        messages.append(
            checks.Error(
                "DOWNLOAD_ACCEL_PREFIX has nginx send files from a folder, but they are in object storage.",
                hint="Leave DOWNLOAD_ACCEL_PREFIX out; FILES_S3_DOWNLOADS says how they are sent.",
                id="cobblestone.E021",
            )
        )
    unused = sorted(name for name in os.environ if name.startswith("FILES_S3_") and os.environ[name].strip())
    if options is None and unused:
        messages.append(
            checks.Warning(
                f"{', '.join(unused)}: set, but the files are not in object storage.",
                hint="Set FILES_STORAGE=s3. While files are being moved, this is as it should be.",
                id="cobblestone.W023",
            )
        )
    return messages


@checks.register(deploy=True)
def check_transport(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Report unencrypted access: anyone who reads a presigned address on the way can open the file, too."""
    options = _options()
    addresses: dict[str, str] = {}
    if options is not None:
        addresses = {"FILES_S3_ENDPOINT": options.endpoint, "FILES_S3_PUBLIC_ENDPOINT": options.public_endpoint}
    return [
        checks.Warning(
            f"{name} does not begin with https://: files and presigned addresses travel in the clear.",
            hint="Use https, or a network that nobody else reads.",
            id="cobblestone.W024",
        )
        for name, address in addresses.items()
        if address.startswith("http://") and urlsplit(address).hostname not in ("127.0.0.1", "::1", "localhost")
    ]

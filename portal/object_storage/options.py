"""The settings of object storage, read from the environment; docs/how-to/object-storage.md explains them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from portal import environment as env

BACKEND: Final = "portal.object_storage.backend.ObjectStorage"
S3: Final = "s3"
"""The short name of that class for FILES_STORAGE."""
_FOLDER: Final = "django.core.files.storage.FileSystemStorage"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?")


@dataclass(frozen=True, slots=True)
class Options:
    """Where the objects are, and the keys to them. ``endpoint`` "": Amazon's for the region; keys "": boto3 finds them.

    ``public_endpoint``: the one that clients reach. ``prefix``: before all names in the bucket.
    """

    bucket: str
    endpoint: str
    public_endpoint: str
    region: str
    prefix: str
    addressing: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    def as_storage(self) -> dict[str, Any]:
        """The entry of Django's STORAGES."""
        return {"BACKEND": BACKEND, "OPTIONS": {"options": self}}


def read() -> Options | None:
    """Read the environment; None without a bucket. Raises SettingError, which names the variable, for a bad value."""
    bucket = env.text("FILES_S3_BUCKET")
    if not bucket:
        return None
    if not _BUCKET.fullmatch(bucket):
        env.refuse("FILES_S3_BUCKET", bucket, "give a bucket's name: 3 to 63 lower-case letters, digits, . and -")
    endpoint = _address("FILES_S3_ENDPOINT")
    region, prefix = env.text("FILES_S3_REGION", "us-east-1"), env.text("FILES_S3_PREFIX")
    if not _REGION.fullmatch(region):
        env.refuse("FILES_S3_REGION", region, "give a region's name, such as eu-central-1")
    if len(prefix) > 100 or (prefix and not _PREFIX.fullmatch(prefix)):
        env.refuse("FILES_S3_PREFIX", prefix, "give folders such as portal/files, of letters, digits, _ . and -")
    access_key, secret_key = env.secret("FILES_S3_ACCESS_KEY"), env.secret("FILES_S3_SECRET_KEY")
    if bool(access_key) != bool(secret_key):
        missing = "FILES_S3_SECRET_KEY" if access_key else "FILES_S3_ACCESS_KEY"
        raise env.SettingError(f"Setting {missing} is missing: the access key and the secret key belong together.")
    return Options(
        bucket=bucket,
        endpoint=endpoint,
        public_endpoint=_address("FILES_S3_PUBLIC_ENDPOINT") or endpoint,
        region=region,
        prefix=prefix.rstrip("/"),
        # Servers other than Amazon's rarely have a host name for each bucket.
        addressing=env.choice("FILES_S3_ADDRESSING", "path" if endpoint else "auto", ["auto", "path", "virtual"]),
        access_key=access_key,
        secret_key=secret_key,
    )


def is_chosen() -> bool:
    """Whether FILES_STORAGE names object storage."""
    return env.text("FILES_STORAGE") in (S3, BACKEND)


def storage_entry() -> dict[str, Any]:
    """The default storage that FILES_STORAGE names. SettingError if it is object storage without a bucket."""
    if not is_chosen():
        return {"BACKEND": env.text("FILES_STORAGE", _FOLDER)}
    return _needed().as_storage()


def _needed() -> Options:
    options = read()
    if options is None:
        raise env.SettingError("Setting FILES_S3_BUCKET is missing: object storage needs a bucket.")
    return options


def _address(name: str) -> str:
    """An address http(s)://host[:port], without a path; empty if it is not set."""
    given = env.text(name).rstrip("/")
    if not given:
        return ""
    try:
        parts = urlsplit(given)
        is_plain = bool(parts.hostname) and parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:
        is_plain = False
    if not is_plain or parts.path or parts.query or parts.fragment or parts.username:
        env.refuse(name, given, "give an address such as https://s3.example.org, without a path")
    return given

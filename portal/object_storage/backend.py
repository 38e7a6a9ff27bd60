"""Django's storage class for objects in an S3 bucket, based on django-storages, with its own errors and reading.

* All errors are OSErrors, as with files: FileNotFoundError for a missing object, `StorageError` for everything else. So
  code that reads and writes files need not know which storage it has.
* An object is streamed from any position, and never held whole in memory or in a temporary file.
* One client serves all threads of a process. One for each thread would take 40 ms and some megabytes each.
"""

from __future__ import annotations

import datetime as dt
import errno
import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final
from urllib.parse import quote

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from django.utils.deconstruct import deconstructible
from storages.backends.s3 import S3Storage

from portal.object_storage.errors import StorageError, StorageUnreachable
from portal.object_storage.options import Options

CONNECT_SECS: Final = 4
READ_SECS: Final = 15
"""Limit of the time between two parts of an answer."""
ATTEMPTS: Final = 2
PART_NBYTES: Final = 16 * 1024 * 1024
"""Larger files are sent in parts of this size: at most 10,000 of them, so 160 GB."""
LISTED: Final = 1000
"""The most names in one answer to a listing; S3 gives no more."""
_BUFFER_NBYTES: Final = 256 * 1024
_MISSING: Final = 404
_SERVER_FAULT: Final = 500


@deconstructible
class ObjectStorage(S3Storage):
    """Objects of one bucket. Names are never reused: a name that is taken gets another ending, as with folders."""

    def __init__(self, options: Options) -> None:
        self.options = options
        # The signature, the form of addresses, and checksums, which not all servers know.
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": options.addressing},
            connect_timeout=CONNECT_SECS,
            read_timeout=READ_SECS,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            max_pool_connections=64,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        super().__init__(
            bucket_name=options.bucket,
            location=options.prefix,
            client_config=config,
            file_overwrite=False,
            # Otherwise a name that ends in ".gz" would declare its content as compressed for the transfer.
            object_parameters={"ContentType": "application/octet-stream"},
            transfer_config=TransferConfig(
                multipart_threshold=PART_NBYTES, multipart_chunksize=PART_NBYTES, use_threads=False
            ),
        )
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}

    @property
    def client(self) -> Any:
        """The client of boto3, one for all threads."""
        return self._client(self.options.endpoint)

    def _client(self, endpoint: str) -> Any:
        with self._lock:
            if endpoint not in self._clients:
                session = boto3.Session(
                    aws_access_key_id=self.options.access_key or None,
                    aws_secret_access_key=self.options.secret_key or None,
                    region_name=self.options.region,
                )
                self._clients[endpoint] = session.client("s3", endpoint_url=endpoint or None, config=self.client_config)
            return self._clients[endpoint]

    def close(self) -> None:
        """Close all connections; they are opened again when needed."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def key(self, name: str) -> str:
        """The object's key in the bucket."""
        return str(self._normalize_name(name))

    # --- Django's interface of a storage ------------------------------------------------------------------------------

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        if mode != "rb":
            raise ValueError(f"Files are opened to be read, not with {mode!r}.")
        reader = _ObjectReader(self, name)
        return File(io.BufferedReader(reader, _BUFFER_NBYTES), name)

    def _save(self, name: str, content: File[Any]) -> str:
        # boto3 closes the file that it was given.
        unclosed = _Unclosed(content)
        with self._as_os_errors(name):
            self.client.upload_fileobj(
                unclosed,
                self.bucket_name,
                self.key(name),
                ExtraArgs=self._get_write_parameters(name),
                Config=self.transfer_config,
            )
        return name

    def delete(self, name: str) -> None:
        """Delete the object; a missing one is no error."""
        with self._as_os_errors(name):
            self.client.delete_object(Bucket=self.bucket_name, Key=self.key(name))

    def exists(self, name: str) -> bool:
        try:
            self._head(name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        return self.as_server_says(name)[0]

    def get_modified_time(self, name: str) -> dt.datetime:
        modified: dt.datetime | None = self._head(name).get("LastModified")
        if modified is None:
            raise StorageError(errno.EIO, "the object storage gives no modification time", name)
        return modified

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        # The key of the whole storage may end with a "/" already.
        prefix = f"{self.key(name).rstrip('/')}/".lstrip("/")
        folders: list[str] = []
        files: list[str] = []
        with self._as_os_errors(name):
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket_name, Prefix=prefix, Delimiter="/"
            )
            for page in pages:
                folders += [entry["Prefix"][len(prefix) : -1] for entry in page.get("CommonPrefixes", ())]
                files += [entry["Key"][len(prefix) :] for entry in page.get("Contents", ()) if entry["Key"] != prefix]
        return folders, files

    def url(self, name: str, *_: Any, **__: Any) -> str:
        raise NotImplementedError("Use presigned_url, which makes addresses for a limited time.")

    # --- specific to object storage -------------------------------------------------------------------------------

    def presigned_url(self, name: str, *, secs: int, file_name: str) -> str:
        """An address at which anybody may get the object, or ranges of it, until ``secs`` have passed.

        ``file_name``: the name under which a browser saves it. The server is not asked.
        """
        params = {
            "Bucket": self.bucket_name,
            "Key": self.key(name),
            "ResponseContentDisposition": f"attachment; filename*=UTF-8''{quote(file_name, safe='')}",
        }
        with self._as_os_errors(name):
            client = self._client(self.options.public_endpoint)
            return str(client.generate_presigned_url("get_object", Params=params, ExpiresIn=secs))

    def as_server_says(self, name: str) -> tuple[int, str]:
        """Return the size, and the MD5 if the server computes one; FileNotFoundError if the object is missing.

        An equal MD5 proves the content. A different one proves nothing: it is of something else if the object came in
        parts, or is encrypted.
        """
        head = self._head(name)
        return _nbytes(head, name), str(head.get("ETag", "")).strip('"')

    def end_unfinished(self, folder: str, before: dt.datetime) -> int:
        """Discard multipart uploads below ``folder`` that began before and never ended; return how many.

        Only below ``folder``: without a prefix, others may have theirs in the same bucket. At most `LISTED` at a time.
        """
        prefix = f"{self.key(folder)}/"
        number = 0
        with self._as_os_errors(prefix):
            unfinished = self.client.list_multipart_uploads(Bucket=self.bucket_name, Prefix=prefix, MaxUploads=LISTED)
            for upload in unfinished.get("Uploads", ()):
                if upload["Initiated"] < before:
                    self.client.abort_multipart_upload(
                        Bucket=self.bucket_name, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
                    number += 1
        return number

    def _head(self, name: str) -> dict[str, Any]:
        with self._as_os_errors(name):
            head: dict[str, Any] = self.client.head_object(Bucket=self.bucket_name, Key=self.key(name))
            return head

    @contextmanager
    def _as_os_errors(self, name: str) -> Iterator[None]:
        """Raise all errors as OSErrors. Their messages contain no secrets."""
        where = self.options.endpoint or f"Amazon S3 in {self.options.region}"
        try:
            yield
        except ClientError as error:
            about = error.response.get("Error", {})
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if status == _MISSING and about.get("Code") != "NoSuchBucket":
                raise FileNotFoundError(errno.ENOENT, "not in the object storage", name) from error
            message = f"{about.get('Code', status)} {about.get('Message', '')}".strip()
            kind = StorageUnreachable if status is None or status >= _SERVER_FAULT else StorageError
            raise kind(
                errno.EIO, f"the object storage at {where}, bucket {self.bucket_name}, answered: {message}", name
            ) from error
        except (BotoCoreError, Boto3Error) as error:
            raise StorageUnreachable(
                errno.EIO, f"the object storage at {where} cannot be used ({type(error).__name__})", name
            ) from error


class _ObjectReader(io.RawIOBase):
    """Streams an object's content; after a seek it is requested again from there."""

    def __init__(self, storage: ObjectStorage, name: str) -> None:
        self._storage = storage
        self._name = name
        self._at = 0
        self._body: Any = None
        answer = self._ask()
        self._body = answer["Body"]
        try:
            self._nbytes = _nbytes(answer, name)
        except StorageError:
            self._drop()
            raise

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._nbytes}[whence]
        if base + offset != self._at:
            self._drop()
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._nbytes:
            return 0
        with self._storage._as_os_errors(self._name):
            if self._body is None:
                self._body = self._ask(Range=f"bytes={self._at}-")["Body"]
            part = self._body.read(len(buffer))
        if not part:
            raise StorageError(errno.EIO, "the object storage ended its answer early", self._name)
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        self._drop()
        super().close()

    def _ask(self, **more: str) -> dict[str, Any]:
        with self._storage._as_os_errors(self._name):
            answer: dict[str, Any] = self._storage.client.get_object(
                Bucket=self._storage.bucket_name, Key=self._storage.key(self._name), **more
            )
            return answer

    def _drop(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None


def _nbytes(answer: dict[str, Any], name: str) -> int:
    """The size in an answer; if its head was cut off it has none, and StorageError is raised."""
    if "ContentLength" not in answer:
        raise StorageError(errno.EIO, "the object storage ended its answer early", name)
    return int(answer["ContentLength"])


class _Unclosed:
    """A file, from its beginning, that stays open when its reader closes it."""

    def __init__(self, file: File[Any] | IO[bytes]) -> None:
        self._file = file
        file.seek(0)

    def read(self, nbytes: int = -1) -> bytes:
        data: bytes = self._file.read(nbytes)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        """Leave the file open: it is its owner's."""

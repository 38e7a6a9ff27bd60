"""Copy all files between a folder and object storage: programs, inputs, outputs, drafts, parts of uploads."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, Final

from django.conf import settings
from django.core.files.storage import FileSystemStorage, Storage
from django.core.management.base import BaseCommand, CommandError

from portal.object_storage import options as object_storage
from portal.object_storage.backend import ObjectStorage
from portal.object_storage.errors import StorageError
from scheduler.files import moving

FOLDER: Final = "folder"
S3: Final = "s3"


class Command(BaseCommand):
    help = (
        "Copy all files that the database names to the other storage, and check their MD5 there. May be"
        " interrupted and repeated: files already there are not sent again. Exit code 1 if one could not be copied."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--to", choices=[FOLDER, S3], required=True, help="where the files go: FILES_DIR, or FILES_S3_BUCKET"
        )
        parser.add_argument(
            "--delete", action="store_true", help="delete each file from the old storage once the other has it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder, bucket = FileSystemStorage(settings.MEDIA_ROOT), _bucket()
        source, target = (folder, bucket) if options["to"] == S3 else (bucket, folder)
        _refuse_to_delete_what_is_used(source, deletes=options["delete"])
        ncopied = nthere = nbytes = nfaults = 0
        try:
            for moved in moving.move(source, target, deletes=options["delete"]):
                if moved.fault:
                    nfaults += 1
                    self.stdout.write(f"{moved.path}: {moved.fault}")
                elif moved.was_there:
                    nthere += 1
                else:
                    ncopied += 1
                    nbytes += moved.nbytes
        except StorageError as error:
            raise CommandError(f"Interrupted after {ncopied} files: {error.strerror}. Repeat the command.") from error
        finally:
            bucket.close()
        self.stdout.write(f"Copied {ncopied} files, {nbytes} bytes; {nthere} were there.")
        if nfaults:
            raise CommandError(f"{nfaults} files could not be copied.", returncode=1)


def _bucket() -> ObjectStorage:
    options = object_storage.read()
    if options is None:
        raise CommandError("Setting FILES_S3_BUCKET is missing: it says which bucket.")
    return ObjectStorage(options)


def _refuse_to_delete_what_is_used(source: Storage, *, deletes: bool) -> None:
    is_used = settings.STORAGES["default"]["BACKEND"] == object_storage.BACKEND
    if deletes and is_used == isinstance(source, ObjectStorage):
        raise CommandError("The site still uses the storage to delete from. Change FILES_STORAGE first.")

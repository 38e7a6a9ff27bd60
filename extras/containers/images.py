"""Make images, and change their variants. Files never change: a variant that is stored again gets new ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.core.files import File
from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from credit.models import App, AppVersion
from extras.containers import unused
from extras.containers.models import Image, ImageFile
from portal.languages.messages import Message, MessageError
from portal.models import User
from portal.object_storage.storage import content_of
from scheduler.engine.limits import is_name, name_rule
from scheduler.files.store import store_file
from scheduler.models import PlanClass, StoredFile
from scheduler.wire.container_jobs import SETTINGS, read_settings, render_settings
from scheduler.wire.job_fields import JobError

DOCKERFILE: Final = "Dockerfile"
MAX_DOCKERFILE_CHARS: Final = 64 * 1024
MAX_FILE_NBYTES: Final = 60 * 1024 * 1024
MAX_FILES: Final = 20
"""The most files of a variant, besides the Dockerfile and its settings."""
MAX_VARIANTS: Final = 20
MAX_IMAGES: Final = 200
"""The most images of one person."""
MAX_IMAGES_NBYTES: Final = 10 * 1024**3
"""The total size of the files of one person's images."""
_BEGINS: Final = re.compile(r"^\s*+FROM\s", re.IGNORECASE | re.MULTILINE)
_BASE: Final = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]{0,254}")


class ImageError(MessageError):
    """No image can be made of this."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The content of a variant; ``settings``: the text of a job.toml, empty: none. ``files``: by their names."""

    dockerfile: str
    settings: str = ""
    files: Sequence[File[bytes]] = ()
    plan_class: str = ""
    cpu: str = ""


def container_apps() -> QuerySet[App]:
    """Return apps with a version that needs Docker."""
    classes = PlanClass.objects.filter(needs_docker=True).values("name")
    versions = AppVersion.objects.filter(plan_class__in=classes, is_deprecated=False)
    return App.objects.filter(is_deprecated=False, pk__in=versions.values("app")).order_by("name")


def plan_classes_of(app: App) -> list[str]:
    """Return the plan classes of the app's container versions: a variant for another one would never be sent."""
    classes = PlanClass.objects.filter(needs_docker=True).values("name")
    versions = AppVersion.objects.filter(app=app, plan_class__in=classes, is_deprecated=False)
    return sorted(set(versions.values_list("plan_class", flat=True)))


def changeable(user: User) -> QuerySet[Image]:
    """Return the images that the person may change: their own; everybody's for those who may change plan classes."""
    images = Image.objects.all()
    return images if user.has_perm("scheduler.change_planclass") else images.filter(owner=user)


def dockerfile_of(base: str, command: str) -> str:
    """Return a Dockerfile that runs a command in the job's folder, with the job's own arguments in ``$ARGS``. Raises
    ImageError.
    """
    if _BASE.fullmatch(base) is None:
        raise ImageError(Message("image_base"))
    # A line break would begin another instruction, and a backslash at the end would swallow the next line.
    if not command.strip() or not command.isprintable() or command.rstrip().endswith("\\"):
        raise ImageError(Message("image_command"))
    return f"FROM {base}\nWORKDIR /app\nCMD {command.strip()}\n"


@transaction.atomic
def make(owner: User, app: App, name: str, variant: Variant) -> Image:
    """Make an image with its first variant. Raises ImageError, storing nothing.

    Locks the owner's row, so that nobody exceeds the limit.
    """
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if Image.objects.filter(owner=owner).count() >= MAX_IMAGES:
        raise ImageError(Message("image_limit", number=MAX_IMAGES))
    image, is_new = Image.objects.get_or_create(name=name, defaults={"app": app, "owner": owner})
    if not is_new:
        raise ImageError(Message("image_name_used", name=name))
    put_variant(image, variant)
    return image


@transaction.atomic
def put_variant(image: Image, variant: Variant) -> None:
    """Give an image a variant, replacing one for the same computers. Raises ImageError. Safe to repeat.

    Locks the owner's row, then the image. Jobs already submitted keep their files.
    """
    contents = _contents(variant)
    if image.owner_id is not None:
        User.objects.select_for_update(no_key=True).get(pk=image.owner_id)
    locked = Image.objects.select_for_update(of=("self",)).select_related("app").get(pk=image.pk)
    if variant.plan_class and variant.plan_class not in plan_classes_of(locked.app):
        raise ImageError(Message("image_plan_class", name=variant.plan_class, app=locked.app.name))
    others = locked.files.exclude(plan_class=variant.plan_class, cpu=variant.cpu)
    if others.values("plan_class", "cpu").distinct().count() >= MAX_VARIANTS:
        raise ImageError(Message("image_variants_limit", number=MAX_VARIANTS))
    _forget(locked.files.filter(plan_class=variant.plan_class, cpu=variant.cpu))
    _check_quota(locked, contents)
    for open_name, content in contents.items():
        given = content_of(content)
        content.seek(0)
        is_executable = content.read(2) in (b"#!", b"\x7fE")
        ending = "x" if is_executable else "f"
        stored = store_file(f"image_{locked.name}_{given.md5}_{ending}", content, is_executable=is_executable)
        ImageFile.objects.create(
            image=locked,
            plan_class=variant.plan_class,
            cpu=variant.cpu,
            open_name=open_name,
            file=stored,
            is_executable=is_executable,
        )


def remove_variant(image: Image, plan_class: str, cpu: str) -> None:
    """Delete a variant, and the image with its last one. Safe to repeat. Locks the image."""
    with transaction.atomic():
        for locked in Image.objects.select_for_update(of=("self",)).filter(pk=image.pk):
            # Compared here, as the names come from a form that anybody can change.
            gone = [file.pk for file in locked.files.all() if (file.plan_class, file.cpu) == (plan_class, cpu)]
            _forget(locked.files.filter(pk__in=gone))
            if not locked.files.exists():
                locked.delete()


def _forget(files: QuerySet[ImageFile]) -> None:
    """Remove files from an image; once this is committed, unused files are deleted."""
    ids = list(files.values_list("file", flat=True))
    files.delete()
    transaction.on_commit(lambda: unused.delete(StoredFile.objects.filter(pk__in=ids), timezone.now()))


def _check_quota(image: Image, contents: Mapping[str, File[bytes]]) -> None:
    """Raise ImageError if the owner would exceed the size limit. The caller holds the lock on the owner's row.

    A file that several variants share counts once for each.
    """
    before = ImageFile.objects.filter(image__owner=image.owner_id).aggregate(nbytes=Sum("file__nbytes"))["nbytes"] or 0
    nbytes = before + sum(content.size for content in contents.values())
    if nbytes > MAX_IMAGES_NBYTES:
        raise ImageError(Message("image_nbytes_limit", nbytes=nbytes, most_nbytes=MAX_IMAGES_NBYTES))


def _contents(variant: Variant) -> Mapping[str, File[bytes]]:
    """Return the files by their names in the job's folder."""
    text = variant.dockerfile.replace("\r\n", "\n")
    if len(text) > MAX_DOCKERFILE_CHARS or "\0" in text or not _BEGINS.search(text):
        raise ImageError(Message("image_dockerfile", number=MAX_DOCKERFILE_CHARS))
    contents: dict[str, File[Any]] = {DOCKERFILE: ContentFile(text.encode())}
    if variant.settings.strip():
        try:
            settings = read_settings(variant.settings)
        except JobError as error:
            raise ImageError(Message("image_settings", field=error.field, reason=error.message)) from error
        contents[SETTINGS] = ContentFile(render_settings(settings).encode())
    if len(variant.files) > MAX_FILES:
        raise ImageError(Message("image_files_limit", number=MAX_FILES))
    for file in variant.files:
        name = file.name or ""
        if not is_name(name):
            raise ImageError(Message("no_name", rule=name_rule()))
        if name.lower() in {taken.lower() for taken in (*contents, DOCKERFILE, SETTINGS, "boinc_finish_called")}:
            raise ImageError(Message("image_file_twice", name=name))
        if file.size > MAX_FILE_NBYTES:
            raise ImageError(Message("file_limit", nbytes=file.size, most_nbytes=MAX_FILE_NBYTES))
        contents[name] = file
    return contents

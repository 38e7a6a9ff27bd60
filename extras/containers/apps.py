"""Register container images with the site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from portal.models import User


class ContainersConfig(extras.SiteApp):
    name = "extras.containers"
    verbose_name = _("Containers")
    room = "project"

    def links(self) -> Sequence[extras.Link]:
        places = (extras.LinkPlace.BATCHES,)
        return [
            extras.Link("run_image", _("Run a container image"), places),
            extras.Link("images", _("Container images"), places),
        ]

    def periodic_tasks(self) -> Mapping[str, extras.Periodic]:
        return {
            "delete-image-files": extras.Periodic(
                "extras.containers.tasks.delete_unused_files", 3600, _("Delete files without an image")
            )
        }

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.containers.models import Image

        about = "the container images that you made"
        yield extras.CopiedFile("containers.json", about, {"images": Image.objects.filter(owner=user).order_by("pk")})

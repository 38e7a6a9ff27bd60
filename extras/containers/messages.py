"""Messages about faults of a container image (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        "image_base": _("The base image is not a name such as python:3.12-slim or ghcr.io/lab/tool:2."),
        "image_command": _("The command is not one line, or it ends in a backslash."),
        "image_dockerfile": _("The Dockerfile has no FROM, or more than %(number)s characters."),
        "image_settings": _("%(field)s: %(reason)s"),
        "image_plan_class": _(
            "%(app)s has no version of the plan class %(name)s, so this variant would never be sent."
        ),
        "image_limit": _("You have %(number)s images, which is the limit. Remove some first."),
        "image_nbytes_limit": _("Your images would have %(nbytes)s bytes; the limit is %(most_nbytes)s. Remove some."),
        "image_variants_limit": _("The image has %(number)s variants, which is the limit."),
        "image_files_limit": _("A variant has at most %(number)s files beside its Dockerfile."),
        "image_file_twice": _("There are two files called %(name)s, or the name is the image’s own."),
        "image_name_used": _("There is already an image called %(name)s. Choose it above, or enter another name."),
    }
)

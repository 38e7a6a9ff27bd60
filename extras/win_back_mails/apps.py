"""Register mails to lapsed volunteers with the site."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.utils.translation import gettext_lazy as _

from portal import extras


class WinBackMailsConfig(extras.SiteApp):
    name = "extras.win_back_mails"
    verbose_name = _("E-mails to inactive volunteers")
    room = "account_manager"

    def periodic_tasks(self) -> Mapping[str, extras.Periodic]:
        return {
            "send-campaigns": extras.Periodic(
                "extras.win_back_mails.tasks.send_campaigns", 600, _("Send mails to inactive volunteers")
            )
        }

    def rights(self) -> Mapping[str, Sequence[str]]:
        actions = {"Account manager operator": ("view", "add", "change"), "Read only": ("view",)}
        return {
            role: [f"win_back_mails.{action}_mailcampaign" for action in allowed] for role, allowed in actions.items()
        }

    def chosen_mails(self) -> Collection[str]:
        from portal.ops.mail_choices import Mail

        return [Mail.LAPSED]

"""Create a team, join one, leave it, transfer it.

A volunteer is in at most one team. Each function is one transaction; it locks the volunteer's row, then their credit,
the membership and the teams by number. So two requests of one volunteer run one after the other.
"""

from __future__ import annotations

from django.db import IntegrityError, connection, transaction
from django.utils.translation import gettext

from credit.models import Membership, Team, UserCredit
from credit.models.teams import NAME_TAKEN
from credit.teams import reads, sql
from portal.models import User
from portal.sign_in import throttle


class TeamRefused(ValueError):
    """The request is refused; the text tells the volunteer why."""


def found(user: User, team: Team) -> Team:
    """Store a new team, whose fields were checked; the volunteer is founder and first member. Raises TeamRefused."""
    try:
        throttle.admit_new_team(user.pk)
        with transaction.atomic():
            credit = _lock(user)
            _leave(user.pk, credit)
            team.founder = user
            team.save()
            _enter(user, team, credit)
    except throttle.Throttled as error:
        raise TeamRefused(
            gettext("You have created several teams today. You can create another one tomorrow.")
        ) from error
    except IntegrityError as error:
        raise TeamRefused(NAME_TAKEN) from error
    return team


def join(user: User, team_id: int) -> Team:
    """Move the volunteer into this team. Nothing changes if they are already in it. Raises TeamRefused."""
    with transaction.atomic():
        credit = _lock(user)
        left = Membership.objects.select_for_update().filter(user=user).values_list("team", flat=True).first()
        # Lock the team that they leave, too: two volunteers who swap teams would each wait for the other's.
        both = Team.objects.select_for_update(no_key=True).filter(pk__in=[team_id, left or team_id]).order_by("pk")
        team = next((team for team in both if team.pk == team_id), None)
        if team is None:
            raise TeamRefused(gettext("There is no such team."))
        if left != team.pk:
            _leave(user.pk, credit)
            _enter(user, team, credit)
            Team.objects.filter(pk=team.pk, founder=None).update(founder=user)
    return team


def leave(user: User) -> None:
    """Remove the volunteer from their team, which keeps its credit.

    If they founded it, it has no founder until somebody joins.
    """
    with transaction.atomic():
        _leave(user.pk, _lock(user))


def hand_on(user: User, member_id: int) -> Team:
    """Make another published member the founder of the volunteer's own team. Raises TeamRefused."""
    with transaction.atomic():
        _lock(user)
        # Leaving also locks the membership before the team.
        members = Membership.objects.select_for_update(of=("self",)).filter(user=member_id, team__founder=user)
        member = members.filter(user__in=reads.published()).select_related("team").first()
        if member is None:
            raise TeamRefused(
                gettext(
                    "You cannot transfer the team to this person: you are not its founder, or their membership is not "
                    "public."
                )
            )
        member.team.founder_id = member_id
        member.team.save(update_fields=["founder"])
    return member.team


def forget(user_id: int) -> None:
    """Keep the credit of a team whose member's account is erased (`portal.extras.SiteApp.account_erased`)."""
    _leave(user_id, UserCredit.objects.filter(user=user_id).values_list("total_credit", flat=True).first() or 0.0)


def _lock(user: User) -> float:
    """Lock and return the volunteer's credit when they leave a team or enter one: the same number for both.

    Grants wait meanwhile. Only the very first cannot, because there is no row to lock yet: it counts for the new team.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
    credit = UserCredit.objects.select_for_update(no_key=True).filter(user=user).first()
    return credit.total_credit if credit is not None else 0.0


def _enter(user: User, team: Team, credit: float) -> None:
    Membership.objects.create(user=user, team=team, credit_before=credit)


def _leave(user_id: int, credit: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.LEAVE, {"user": user_id, "credit": credit})
    # A team whose founder left has none until somebody joins.
    Team.objects.filter(founder=user_id).exclude(memberships__user=user_id).update(founder=None)

"""Found a team, join one, leave it, hand it on.

A volunteer is in one team at most. Each function is one transaction; it locks the volunteer's row, then their credit,
the membership and the teams, these by number. So two requests of one volunteer come one after the other.
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
    """It cannot be done; the text tells the volunteer why."""


def found(user: User, team: Team) -> Team:
    """Keep a new team, whose fields were checked; the volunteer is founder and first member. Raises TeamRefused."""
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
    """Put the volunteer into this team, and out of another. Nothing changes if they are in it. Raises TeamRefused."""
    with transaction.atomic():
        credit = _lock(user)
        left = Membership.objects.select_for_update().filter(user=user).values_list("team", flat=True).first()
        # The one that they leave, too: two who change places would each wait for the other's team.
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
    """Take the volunteer out of their team, which keeps its credit. A founder who leaves hands nothing on."""
    with transaction.atomic():
        _leave(user.pk, _lock(user))


def hand_on(user: User, member_id: int) -> Team:
    """Make another member who is published the founder of the volunteer's own team. Raises TeamRefused."""
    with transaction.atomic():
        _lock(user)
        # Anyone who leaves locks the membership, too, before the team.
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
    """An account is erased: the team keeps its credit (`portal.extras.SiteApp.account_erased`)."""
    _leave(user_id, UserCredit.objects.filter(user=user_id).values_list("total_credit", flat=True).first() or 0.0)


def _lock(user: User) -> float:
    """What the volunteer has when they leave a team or enter one: the same number for both.

    What is granted meanwhile waits. The very first grant cannot, as there is no row yet to lock: it is the new team's.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
    credit = UserCredit.objects.select_for_update(no_key=True).filter(user=user).first()
    return credit.total_credit if credit is not None else 0.0


def _enter(user: User, team: Team, credit: float) -> None:
    Membership.objects.create(user=user, team=team, credit_before=credit)


def _leave(user_id: int, credit: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.LEAVE, {"user": user_id, "credit": credit})
    # A team that its founder left has none, until somebody joins.
    Team.objects.filter(founder=user_id).exclude(memberships__user=user_id).update(founder=None)

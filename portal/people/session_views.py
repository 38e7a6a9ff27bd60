"""The page of a person's sessions: allauth's, with the list read in one statement instead of one for each session."""

from __future__ import annotations

from typing import Any

from allauth.usersessions import app_settings
from allauth.usersessions.models import UserSession
from allauth.usersessions.views import ListUserSessionsView
from django.contrib.auth.decorators import login_required
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef
from django.utils import timezone


class SessionsView(ListUserSessionsView):
    """Those that are alive; the rows of ended ones are removed by housekeeping."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # Past allauth's own, which looks up each session.
        context: dict[str, Any] = super(ListUserSessionsView, self).get_context_data(**kwargs)
        alive = Session.objects.filter(session_key=OuterRef("session_key"), expire_date__gt=timezone.now())
        sessions = list(UserSession.objects.filter(Exists(alive), user=self.request.user).order_by("created_at", "pk"))
        return context | {
            "sessions": sessions,
            "session_count": len(sessions),
            "show_last_seen_at": app_settings.TRACK_ACTIVITY,
        }


sessions = login_required(SessionsView.as_view())

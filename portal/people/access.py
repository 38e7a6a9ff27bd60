"""Loaders for pages: each fetches an object only if it belongs to the visitor.

Objects of other people are answered with 404, never 403. Operators look at other people's data in the admin.
"""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from portal.models import ClientKey, Host, User

Visitor = User | AnonymousUser


def signed_in(request: HttpRequest) -> User:
    """The visitor, on a page behind ``login_required``; Http404 for anybody else."""
    if not isinstance(request.user, User):
        raise Http404
    return request.user


def own_hosts(user: Visitor) -> QuerySet[Host]:
    """The user's computers, without the records that were merged into another."""
    return Host.objects.filter(owner_id=user.pk, merged_into=None)


def get_own_host(user: Visitor, pk: int) -> Host:
    """The user's computer, also one that was merged into another; Http404 for another person's."""
    return get_object_or_404(Host, owner_id=user.pk, pk=pk)


def get_own_key(user: Visitor, pk: int) -> ClientKey:
    """The user's client key; Http404 for another person's."""
    return get_object_or_404(ClientKey, user_id=user.pk, pk=pk)

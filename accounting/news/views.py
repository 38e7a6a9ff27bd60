"""The page of news, for everybody."""

from __future__ import annotations

from typing import Final

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounting.news import reads

PAGE: Final = 10


@require_safe
def news(request: HttpRequest) -> HttpResponse:
    """What do the operators say?"""
    page = Paginator(reads.public(timezone.now()), PAGE).get_page(request.GET.get("page"))
    return render(request, "accounting/news.html", {"page": page})

"""Every address of the site."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def routes() -> Iterator[tuple[str, URLPattern]]:
    """Yield each address in the form of its pattern, and the pattern."""
    yield from _below(get_resolver(), "")


def _below(resolver: URLResolver, before: str) -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _below(pattern, route)
        else:
            yield route, pattern

"""What all views of the REST API share: authentication, scopes, throttling, and pages by cursor.

A request names a token in its Authorization header, or comes from somebody signed in on the site. Views read only,
unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeVar

from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from portal.models import ApiToken, User
from portal.people.api_tokens import find_valid_token
from portal.people.staff import are_rights_held, lacks_second_factor
from portal.sign_in import throttle

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MAX_ID: Final = 2**63 - 1
_Row = TypeVar("_Row")


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer cobble_…``."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        kind, _, text = get_authorization_header(request).partition(b" ")
        if kind.lower() != b"bearer":
            return None
        token = find_valid_token(text.strip().decode("ascii", "replace"))
        if token is None:
            raise AuthenticationFailed("This token is not valid, or not any more. Make one at /account/tokens/.")
        if are_rights_held(token.user):
            raise AuthenticationFailed("This operator's rights are held. Another superuser has to allow them again.")
        if lacks_second_factor(token.user):
            raise AuthenticationFailed("Operators need a second factor: set one up at /account/2fa/.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):
    """Describes the tokens in the API's schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token from /account/tokens/."}


class HasScope(BasePermission):
    """A signed-in user may read all of their own data; a token, the data that its scopes name."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.user, User):
            raise NotAuthenticated
        scope = getattr(view, "scope", "")
        if isinstance(request.auth, ApiToken) and scope not in request.auth.scopes:
            raise PermissionDenied(f"This token has no scope {scope}. Make another one at /account/tokens/.")
        return True


class UserThrottle(BaseThrottle):
    """Requests per minute of each volunteer, by all tokens together."""

    wait_secs = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.user, User):
            return True  # is refused anyway
        try:
            throttle.admit_api(request.user.pk)
        except throttle.Throttled as error:
            self.wait_secs = max(1.0, (error.until - timezone.now()).total_seconds())
            return False
        return True

    def wait(self) -> float:
        return self.wait_secs


class PageQuery(serializers.Serializer[Any]):
    """Which part of a list."""

    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT, help_text="Results per page."
    )
    cursor = serializers.CharField(
        max_length=80, required=False, help_text="Where the page begins; use only values from `next`."
    )


class NoQuery(serializers.Serializer[Any]):
    """No parameters."""


class ApiView(APIView):
    """A view of the API. ``scope``: the scope that a token needs; ``query_class``: the known parameters."""

    scope: ClassVar[str]
    query_class: ClassVar[type[serializers.Serializer[Any]]] = NoQuery
    authentication_classes = (TokenAuthentication, SessionAuthentication)
    permission_classes = (HasScope,)
    throttle_classes = (UserThrottle,)
    renderer_classes = (JSONRenderer,)
    http_method_names = ["get", "head", "options"]

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """An answer is for one person, by their token or session: no cache keeps it, not even for the same address."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers["Cache-Control"] = "private, no-store"
        patch_vary_headers(answer, ("Authorization", "Cookie"))
        return answer

    @property
    def volunteer(self) -> User:
        """Whose data the request reads; `HasScope` has made sure that there is somebody."""
        user = self.request.user
        if not isinstance(user, User):
            raise NotAuthenticated
        return user

    def query(self) -> dict[str, Any]:
        """The request's parameters, checked; an unknown one is refused, as leaving it out would give other data."""
        serializer = self.query_class(data=self.request.query_params)
        if unknown := sorted(set(self.request.query_params) - set(serializer.fields)):
            names = ", ".join(serializer.fields) or "none"
            raise serializers.ValidationError({name[:40]: [f"Unknown parameter. Known: {names}."] for name in unknown})
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def page(
        self,
        rows: Sequence[_Row],
        limit: int,
        cursor_of: Callable[[_Row], str],
        represent: Callable[[_Row], dict[str, Any]],
    ) -> Response:
        """A page of results; ``rows`` has one more than ``limit`` if there is a next page."""
        following = None
        if len(rows) > limit:
            rows = rows[:limit]
            address = self.request.build_absolute_uri()
            following = replace_query_param(address, "cursor", cursor_of(rows[-1]))
        return Response({"next": following, "results": [represent(row) for row in rows]})


@csrf_exempt
def unknown_address(request: HttpRequest, path: str) -> JsonResponse:
    """The answer to a program that asks below /api/ for what there is not."""
    answer = JsonResponse({"detail": "There is no such address. All are listed at /api/v1/."}, status=404)
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


def read_id_cursor(query: dict[str, Any]) -> int:
    """The id that the page before ended with; 0 for the first page."""
    text = query.get("cursor", "0")
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_ID):
        raise serializers.ValidationError({"cursor": ["Not a cursor of this list. Take it from `next`."]})
    return int(text)


def page_of(result: type[serializers.Serializer[Any]], name: str) -> serializers.Serializer[Any]:
    """The form of a page of these results, for the API's description."""
    fields = {
        "next": serializers.URLField(allow_null=True, help_text="The next page; null on the last one."),
        "results": result(many=True),
    }
    made: serializers.Serializer[Any] = type(f"{name}Page", (serializers.Serializer,), fields)()
    return made

"""What all views of the REST API share: authentication, scopes, limits, conditional requests, and pages by cursor.

A request has a token in its Authorization header, or comes from somebody signed in on the site. Views are read-only
unless they say otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, ParseError, PermissionDenied
from rest_framework.parsers import JSONParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from portal.models import ApiToken, User
from portal.people.api_tokens import find_valid_token
from portal.people.staff import are_rights_held, lacks_second_factor
from portal.rest.fields import WholeNumberParam
from portal.rest.problems import QUOTA, BodyTooLong, problem_reply
from portal.sign_in import throttle

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MAX_ID: Final = 2**63 - 1
_READS: Final = ("GET", "HEAD")
_Row = TypeVar("_Row")
_Object = TypeVar("_Object", bound=Model)


class TokenAuthentication(BaseAuthentication):
    """Authenticates by ``Authorization: Bearer cobble_…``."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        kind, _, text = get_authorization_header(request).partition(b" ")
        if kind.lower() != b"bearer":
            return None
        token = find_valid_token(text.strip().decode("ascii", "replace"))
        if token is None:
            raise AuthenticationFailed("This token is not valid, or no longer valid. Make one at /account/tokens/.")
        if are_rights_held(token.user):
            raise AuthenticationFailed("This operator's rights are withheld. Another superuser has to restore them.")
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
    """A signed-in user may read all of their own data; a token, the data of its scopes."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.user, User):
            raise NotAuthenticated
        scope = getattr(view, "scope", "")
        if isinstance(request.auth, ApiToken) and scope not in request.auth.scopes:
            raise PermissionDenied(f"This token has no scope {scope}. Make another one at /account/tokens/.")
        return True


class NestedJSONParser(JSONParser):
    """JSON with a limit on its nesting."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except RecursionError:
            raise ParseError("JSON parse error - nested too deeply") from None


class NoQuery(serializers.Serializer[Any]):
    """No parameters."""


class PageQuery(serializers.Serializer[Any]):
    """The part of a list."""

    limit = WholeNumberParam(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT, help_text="Results per page.")
    cursor = serializers.CharField(
        max_length=80, required=False, help_text="Where the page begins; use only values from `next`."
    )


class ListQuery(PageQuery):
    """The part of a list, and from which end."""

    order = serializers.ChoiceField(
        choices=["oldest", "newest"], default="oldest", help_text="Which come first, by their ids."
    )


class ApiView(APIView):
    """A view of the API. ``scope``: the one that a token needs; ``query_class``: the known parameters."""

    scope: ClassVar[str]
    query_class: ClassVar[type[serializers.Serializer[Any]]] = NoQuery
    max_body_nbytes: ClassVar[int] = 64 * 1024
    authentication_classes: Sequence[type[BaseAuthentication]] = (TokenAuthentication, SessionAuthentication)
    permission_classes = (HasScope,)
    parser_classes = (NestedJSONParser,)
    renderer_classes = (JSONRenderer,)
    http_method_names = ["get", "head", "options"]
    quota: throttle.Quota | None = None

    def check_throttles(self, request: Request) -> None:
        """Count the request of this volunteer, over all tokens together."""
        self.quota = throttle.count_api(self.volunteer.pk)
        if self.quota is not None and self.quota.is_spent:
            self.throttled(request, self.quota.wait_secs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add what is left of the quota, and answer 304 if the client has the same content already.

        An answer is for one person, by their token or session: no cache may share it, or reuse it without asking.
        """
        answer: HttpResponseBase = super().finalize_response(request, response, *args, **kwargs)
        if request.method in _READS and answer.status_code < 400:
            if isinstance(answer, Response):
                answer = unless_known(request, _etag(answer), answer) or answer
            is_program = isinstance(request.auth, ApiToken)
            answer.headers["Cache-Control"] = "private, no-cache" if is_program else "private, no-store"
        else:
            answer.headers["Cache-Control"] = "private, no-store"
        patch_vary_headers(answer, ("Authorization", "Cookie"))
        if self.quota is not None:
            answer.headers["RateLimit-Policy"] = f'"{QUOTA}";q={self.quota.limit};w={throttle.API_WINDOW_SECS}'
            answer.headers["RateLimit"] = f'"{QUOTA}";r={self.quota.remaining};t={self.quota.wait_secs}'
        return answer

    @property
    def volunteer(self) -> User:
        """The person whose data the request reads; `HasScope` has ensured that there is one."""
        user = self.request.user
        if not isinstance(user, User):
            raise NotAuthenticated
        return user

    def no_query(self) -> None:
        """Refuse parameters if the method has none."""
        self.query(NoQuery)

    def query(self, query_class: type[serializers.Serializer[Any]] | None = None) -> dict[str, Any]:
        """The request's parameters, checked; an unknown one is refused, as ignoring it would return other data."""
        params = self.request.query_params
        # As a plain mapping: empty values of a form would be ignored.
        serializer = (query_class or self.query_class)(data=params.dict())
        if unknown := sorted(set(params) - set(serializer.fields)):
            names = ", ".join(serializer.fields) or "none"
            raise serializers.ValidationError(
                {name[:40]: [f"Unknown parameter. There are: {names}."] for name in unknown}
            )
        if repeated := [name for name in params if len(params.getlist(name)) > 1]:
            raise serializers.ValidationError({name: ["Give it once."] for name in repeated})
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def body(self, form_class: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The request's body, checked."""
        form = form_class(data=self.json())
        form.is_valid(raise_exception=True)
        return dict(form.validated_data)

    def json(self) -> Any:
        """The request's body, which may be longer than DATA_UPLOAD_MAX_MEMORY_SIZE."""
        length = self.request.META.get("CONTENT_LENGTH") or ""
        if not length.isdecimal():
            raise ParseError("There is no body, or Content-Length does not say how long it is.")
        if int(length) > self.max_body_nbytes:
            raise BodyTooLong(f"The body may have at most {self.max_body_nbytes} bytes.")
        # Where HttpRequest.body stores it
        self.request._request._body = self.request._request.read(int(length))
        return self.request.data

    def id_page(
        self, rows: QuerySet[_Object], query: dict[str, Any], represent: Callable[[_Object], dict[str, Any]]
    ) -> Response:
        """A page of rows, ordered by id."""
        return self.page(self.id_rows(rows, query), query["limit"], lambda row: str(row.pk), represent)

    def id_rows(self, rows: QuerySet[_Object], query: dict[str, Any]) -> list[_Object]:
        """The rows of a page, and one more if there is a next page."""
        cursor = _read_id_cursor(query)
        is_newest_first = query.get("order") == "newest"
        if cursor is not None:
            rows = rows.filter(**{"pk__lt" if is_newest_first else "pk__gt": cursor})
        return list(rows.order_by("-pk" if is_newest_first else "pk")[: query["limit"] + 1])

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


class OperatorView(ApiView):
    """The base of operators' views. It accepts only tokens, as a session may be older than the admin would accept.

    A token needs the scope, and its owner the right.
    """

    authentication_classes = (TokenAuthentication,)

    def need(self, *rights: str) -> None:
        if not all(self.volunteer.has_perm(right) for right in rights):
            raise PermissionDenied("Your role does not cover this. Ask the operators of this site.")


def unless_known(request: Request, etag: str, answer: Response | None = None) -> HttpResponseBase | None:
    """Check the request's conditions: the answer, or 304 or 412; None if the answer has yet to be made."""
    conditional = get_conditional_response(request._request, etag=etag, response=answer)
    if conditional is not None and conditional.status_code == HTTPStatus.PRECONDITION_FAILED:
        conditional = problem_reply(HTTPStatus.PRECONDITION_FAILED, "It does not match If-Match.")
    if conditional is not None:
        conditional.headers["ETag"] = etag
    return conditional


def _etag(answer: Response) -> str:
    """The tag of the answer's content; weak, as it may be compressed for the transfer."""
    answer.render()
    return f'W/"{hashlib.blake2b(answer.rendered_content, digest_size=16).hexdigest()}"'


def _read_id_cursor(query: dict[str, Any]) -> int | None:
    """The last id of the page before; None for the first page."""
    text = query.get("cursor")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_ID):
        raise serializers.ValidationError({"cursor": ["Not a cursor of this list. Take it from `next`."]})
    return int(text)


def id_field(what: str) -> WholeNumberParam:
    """A parameter that limits a list to one row's."""
    return WholeNumberParam(min_value=1, max_value=MAX_ID, required=False, help_text=f"Only those of this {what}.")


def page_of(result: type[serializers.Serializer[Any]], name: str) -> serializers.Serializer[Any]:
    """The serializer of a page of these results, for the API's description."""
    fields = {
        "next": serializers.URLField(allow_null=True, help_text="The next page; null on the last one."),
        "results": result(many=True),
    }
    made: serializers.Serializer[Any] = type(f"{name}Page", (serializers.Serializer,), fields)()
    return made

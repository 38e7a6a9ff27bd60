"""What the links of old mails lead to."""

from __future__ import annotations

import hmac
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from extras.moving_in.models import UnsubscribeCode
from portal.ops.mail_choices import Mail
from portal.ops.mails import unsubscribe_url
from portal.wire.credentials import key_hash

_MAX_DIGITS: Final = 18
_CODE_CHARS: Final = 32


@require_safe
@never_cache
def unsubscribe_by_code(request: HttpRequest) -> HttpResponse:
    """Lead to the page that ends status mails, if the link has the volunteer's code; else to the choice of mails."""
    number, code = request.GET.get("userid", ""), request.GET.get("code", "")
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS
    row = UnsubscribeCode.objects.filter(user=int(number)).first() if is_number and len(code) == _CODE_CHARS else None
    is_right = row is not None and hmac.compare_digest(bytes(row.code_hash), key_hash(code.lower()))
    response = redirect(unsubscribe_url(int(number), Mail.STATUS) if is_right else "mail_preferences")
    # The code is not told to the next page.
    response.headers["Referrer-Policy"] = "no-referrer"
    return response

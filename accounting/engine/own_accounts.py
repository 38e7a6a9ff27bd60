"""Interpret a project's refusal as the state of a volunteer's account there. Pure.

Source: BOINC protocol, error numbers.
"""

from __future__ import annotations

from typing import Final

_OF_LOGINS: Final = {
    -136: "no_account",
    -137: "taken",
    -155: "wrong_password",
    -161: "no_account",
    -188: "not_created",
    -205: "not_created",
    -206: "wrong_password",
    -207: "taken",
    -208: "not_created",
    -242: "terms",
}
_OF_KEYS: Final = {-136: "key_refused", -155: "key_refused", -161: "key_refused", -206: "key_refused"}


def state_of_refusal(error_num: int, *, is_key: bool) -> str:
    """Return the account's state (`OwnAccount.State`) after BOINC's error number; ``is_key``: the request was about a
    key.

    Errors that say nothing about the account, such as that the project is down, leave it unknown.
    """
    return (_OF_KEYS if is_key else _OF_LOGINS).get(error_num, "unreachable")

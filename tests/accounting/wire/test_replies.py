"""Replies to account-manager requests: against captured ones, escaping, sizes, and what must not be sent."""

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.wire.replies import (
    AccountEntry,
    AccountManagerReply,
    Preferences,
    PreferenceSet,
    RssFeed,
    escape,
    render_reply,
)
from portal.clients.messages import refusal
from portal.wire.boinc_errors import ERR_BAD_PASSWORD, ERR_GENERIC
from portal.wire.scanner import TagScanner, decode
from tests.support.am_requests import captured

KEY = "be834110a013b1306352b55339acd440"
ACCOUNT_KEY = "1_77aa6d2754819a30f128656675a452bb"
TOKEN = "0123456789abcdef0123456789abcdef"
KEYWORDS: dict[str, Any] = {"keywords_yes": (1, 2), "keywords_no": (3,)}


def element_text(body: bytes, tag: str) -> str:
    """What is between the first such tags of a message, as it is."""
    match = re.search(rb"<%s>(.*?)</%s>" % (tag.encode(), tag.encode()), body, re.DOTALL)
    assert match is not None
    return match[1].decode()


SIGNING_KEY = element_text(captured("am_reply_dynamic_one_account"), "signing_key")
SIGNATURE = element_text(captured("am_reply_dynamic_one_account"), "url_signature")


def flat(body: bytes) -> list[tuple[str, str]]:
    """(path, text) of all leaves of a well-formed message; `<x/>` is 1, and <opaque> is left out."""
    elements: list[tuple[str, str]] = []

    def walk(element: ElementTree.Element, path: str) -> None:
        for child in element:
            if child.tag != "opaque":
                walk(child, f"{path}/{child.tag}")
        if not len(element):
            elements.append((path, (element.text or "1").strip()))

    walk(ElementTree.fromstring(body), "")
    return sorted(elements)


def reply(*accounts: AccountEntry) -> AccountManagerReply:
    return AccountManagerReply(
        name="Test AM",
        signing_key=SIGNING_KEY,
        repeat_secs=45,
        host_token=TOKEN,
        authenticator=KEY,
        user_name="Test & User",
        team_name="Test Team",
        accounts=accounts,
    )


def refused(error_num: int, message: str) -> bytes:
    return refusal("acct_mgr_reply", error_num, message).body


def account() -> AccountEntry:
    return AccountEntry(
        url="http://127.0.0.1:8201/",
        url_signature=SIGNATURE,
        authenticator=ACCOUNT_KEY,
        resource_share=50,
    )


def rendered(**values: Any) -> bytes:
    return render_reply(replace(reply(account()), **values))


def rendered_account(**values: Any) -> bytes:
    return render_reply(reply(replace(account(), **values)))


def shown(body: bytes, tag: bytes) -> str:
    """The text of the first such element as a client shows it."""
    scan = TagScanner(body)
    while (name := scan.next()) is not None:
        if name == tag:
            return decode(scan.element_text(tag), entities=True)
    raise AssertionError(f"no {tag!r}")


def test_a_dynamic_reply_says_what_the_captured_one_says() -> None:
    preferences = {"run_if_user_active": 1, "suspend_cpu_usage": 0, "work_buf_min_days": 0.001}
    ours = rendered(
        **KEYWORDS,
        global_preferences=Preferences(1_700_000_000, PreferenceSet({**preferences, "cpu_usage_limit": 100})),
        accounts=[replace(account(), user_avg_ec=10.5, user_total_ec=777.25, no_rsc=("NVIDIA",))],
    )
    assert flat(ours) == flat(captured("am_reply_dynamic_one_account"))


def test_a_static_reply_says_what_the_captured_one_says() -> None:
    ours = rendered(
        **KEYWORDS,
        authenticator="",
        dynamic=False,
        repeat_secs=600,
        messages=["hello from the manager"],
        accounts=[],
    )
    assert flat(ours) == flat(captured("am_reply_static_no_account"))


def test_a_detaching_reply_says_what_the_captured_one_says() -> None:
    ours = rendered(repeat_secs=60, accounts=[replace(account(), detach_when_done=True)])
    assert flat(ours) == flat(captured("am_reply_detach_when_done"))


def test_refusals_say_what_the_captured_ones_say() -> None:
    ours = refused(ERR_GENERIC, "first test: an error message")
    assert flat(ours) == flat(captured("am_reply_error_msg"))
    assert flat(refused(ERR_BAD_PASSWORD, "")) == flat(captured("am_reply_bad_password"))


def test_key_and_signature_stand_flush_left_on_their_own_lines() -> None:
    body = render_reply(reply(account())).decode()
    for tag, text in (("signing_key", SIGNING_KEY), ("url_signature", SIGNATURE)):
        lines = "".join(f"{line.strip()}\n" for line in text.split())
        assert f"<{tag}>\n{lines}</{tag}>\n" in body
    assert "\r" not in body


def test_line_ends_of_other_systems_in_keys_become_lf() -> None:
    indented = SIGNING_KEY.replace("\n", "\r\n    ")
    assert rendered(signing_key=indented) == rendered()


def test_the_host_id_is_what_a_request_brings_back() -> None:
    assert f"<opaque><host>{TOKEN}</host></opaque>" in rendered().decode()


def test_everything_that_a_reply_can_say() -> None:
    day = {"start_hour": 8, "end_hour": 17.5}
    body = rendered(
        host_venue="home",
        no_project_notices=True,
        rss_feeds=[RssFeed("https://example.org/notices.rss", 86_400.0)],
        messages=["one", "two"],
        global_preferences=Preferences(
            7, PreferenceSet({"cpu_usage_limit": 12.5}, {0: day}), {"work": PreferenceSet({"start_hour": 9})}
        ),
        accounts=[],
    )
    assert set(flat(body)) >= {
        ("/host_venue", "home"),
        ("/no_project_notices", "1"),
        ("/rss_feeds/rss_feed/url", "https://example.org/notices.rss"),
        ("/rss_feeds/rss_feed/poll_interval", "86400"),
        ("/message", "one"),
        ("/message", "two"),
        ("/global_preferences/mod_time", "7"),
        ("/global_preferences/cpu_usage_limit", "12.5"),
        ("/global_preferences/day_prefs/day_of_week", "0"),
        ("/global_preferences/day_prefs/end_hour", "17.5"),
        ("/global_preferences/venue/start_hour", "9"),
    }
    assert b'<venue name="work">' in body


def test_everything_that_an_account_can_say() -> None:
    body = rendered_account(
        update=True,
        dont_request_more_work=True,
        detach_when_done=True,
        suspend=True,
        abort_not_started=True,
        no_rsc=["CPU", "intel_gpu"],
        totals=(600_340, 1, 259_346_744, 0, 2, 3),
    )
    said = {path.removeprefix("/account/"): text for path, text in flat(body) if path.startswith("/account/")}
    assert [text for path, text in flat(body) if path == "/account/no_rsc"] == ["CPU", "intel_gpu"]
    assert {name: said[name] for name in ("update", "dont_request_more_work", "detach_when_done", "suspend")} == {
        "update": "1",
        "dont_request_more_work": "1",
        "detach_when_done": "1",
        "suspend": "1",
    }
    assert said["abort_not_started"] == "1"
    assert (said["cpu_ec"], said["gpu_ec"]) == ("0.600340", "0.000001")
    assert (said["cpu_time"], said["gpu_time"]) == ("259.346744", "0.000000")
    assert (said["njobs_success"], said["njobs_error"]) == ("2", "3")


def test_an_account_says_nothing_that_it_was_not_asked_to() -> None:
    body = render_reply(reply(AccountEntry("http://127.0.0.1:8201/", detach_when_done=True)))
    assert [entry for entry in flat(body) if entry[0].startswith("/account")] == [
        ("/account/detach_when_done", "1"),
        ("/account/url", "http://127.0.0.1:8201/"),
    ]


@pytest.mark.parametrize(("suspend", "text"), [(None, None), (False, "0"), (True, "1")])
def test_suspend_has_three_states(suspend: bool | None, text: str | None) -> None:
    assert dict(flat(rendered_account(suspend=suspend))).get("/account/suspend") == text


@given(st.text(max_size=300))
def test_a_name_is_shown_as_it_is_but_for_control_characters(name: str) -> None:
    body = rendered(user_name=name)
    ElementTree.fromstring(body)
    if not name:
        assert b"<user_name>" not in body
        return
    sent = element_text(body, "user_name")
    assert len(sent.encode()) <= 255
    visible = re.sub(r"[\t\r\n]+", " ", name)
    visible = re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "", visible)
    read = shown(body, b"user_name")
    assert visible.strip(" ").startswith(read)
    # Nothing is cut that would have fitted: the next character has at most five bytes.
    assert len(sent.encode()) > 250 or read == visible.strip(" ") or len(name) > 255


def test_a_name_of_markup_is_cut_between_entities() -> None:
    # 255 bytes hold 51 times "&amp;" exactly.
    assert element_text(rendered(user_name="&" * 300), "user_name") == "&amp;" * 51
    assert element_text(rendered(user_name="é" * 300), "user_name") == "é" * 127
    assert element_text(rendered(name="a" * 300), "name") == "a" * 255


def test_messages_are_escaped_and_limited() -> None:
    body = rendered(messages=["Use <b>your</b> key & try\nagain\x00\x1b" + "é" * 2000])
    sent = element_text(body, "message")
    assert sent.startswith("Use &lt;b&gt;your&lt;/b&gt; key &amp; try againé")
    assert 998 < len(sent.encode()) <= 1000
    ElementTree.fromstring(body)


def test_error_sentences_are_escaped() -> None:
    body = refused(ERR_BAD_PASSWORD, "Use <b>your</b> key & try again\x00\x1bé")
    assert element_text(body, "error_msg") == "Use &lt;b&gt;your&lt;/b&gt; key &amp; try againé"
    assert element_text(body, "error_num") == "-206"
    ElementTree.fromstring(body)


def test_a_url_with_an_ampersand_reaches_the_client_as_it_was_signed() -> None:
    url = "http://example.org/?a=1&b=2/"
    assert shown(rendered_account(url=url), b"url") == url


def test_the_longest_reply_is_still_well_formed() -> None:
    accounts = [replace(account(), url=f"http://p{n}.example.org/") for n in range(500)]
    body = render_reply(reply(*accounts))
    assert len(ElementTree.fromstring(body).findall("account")) == 500


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"signing_key": "<x>"}, "signing_key is not lines of hexadecimal digits"),
        ({"signing_key": ""}, "signing_key is not lines"),
        ({"signing_key": "1024\n" + "ab" * 2048}, "signing_key is not lines"),
        ({"authenticator": "x" * 256}, "authenticator is not printable ASCII text of at most 255"),
        ({"authenticator": "a\nb"}, "authenticator is not printable"),
        ({"host_token": "</opaque>"}, "host_token is not 1 to 64 letters and digits"),
        ({"host_token": "a" * 65}, "host_token is not"),
        ({"rss_feeds": [RssFeed("http://x/\n", 1)]}, "url is not printable"),
        ({"global_preferences": Preferences(0, PreferenceSet({"a><b": 1}))}, "not the name of a preference"),
        ({"global_preferences": Preferences(0, PreferenceSet({"a": float("nan")}))}, "nan is not a number"),
        ({"global_preferences": Preferences(0, PreferenceSet({"a": float("inf")}))}, "inf is not a number"),
    ],
)
def test_what_a_client_could_not_hold_is_refused(values: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rendered(**values)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"url": "http://" + "x" * 250}, "url is longer than 255 bytes"),
        ({"url_signature": "zz\n.\n"}, "url_signature is not lines of hexadecimal digits"),
        ({"authenticator": "é"}, "authenticator is not printable ASCII"),
        ({"resource_share": float("nan")}, "nan is not a number"),
        ({"user_total_ec": float("inf")}, "inf is not a number"),
    ],
)
def test_an_account_that_a_client_could_not_hold_is_refused(values: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rendered_account(**values)


@given(st.text(), st.integers(1, 60))
def test_escaping_never_exceeds_its_limit(text: str, limit: int) -> None:
    escaped = escape(text, limit)
    assert len(escaped.encode()) <= limit
    ElementTree.fromstring(f"<x>{escaped}</x>")

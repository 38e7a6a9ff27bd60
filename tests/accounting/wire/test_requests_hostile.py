"""Account-manager requests that are not well-formed, not honest, or too large."""

import re

import pytest

from accounting.engine.amounts import KINDS, Totals
from accounting.engine.states import Unreadable
from accounting.wire.requests import AccountManagerRequest, canonical_url, parse_request
from portal.languages.messages import Message
from portal.wire.scanner import ProtocolError
from tests.support.am_requests import SentProject, SentRequest

TOKEN = "0123456789abcdef0123456789abcdef"
WORK = (1.0, 2.0, 3.0, 4.0, 5, 6)
WORK_MICRO = Totals(1_000_000, 2_000_000, 3_000_000, 4_000_000, 5, 6)


def two_projects(name: bytes) -> bytes:
    """A request with a project of that name and an ordinary one."""
    evil = SentProject("http://a.example.org/", name=name, totals=WORK)
    plain = SentProject("http://b.example.org/", name=b"Plain", totals=WORK)
    return SentRequest([evil, plain]).printed()


def with_element(tag: str, text: bytes) -> AccountManagerRequest:
    """A request whose one project has that text in that element."""
    body = SentRequest([SentProject(totals=WORK)]).printed()
    opening, closing = b"<%s>" % tag.encode(), b"</%s>" % tag.encode()
    start = body.index(opening) + len(opening)
    return parse_request(body[:start] + text + body[body.index(closing) :])


@pytest.mark.parametrize(
    "name",
    [
        b"R&D <x> Home",
        b"R&amp;D@Home",
        b"a </project> b",
        b"</project></acct_mgr_request>",
        b"<project>",
        b"<project><url>http://evil.example.org/</url>",
        b"x <host_info> <opaque> y",
        b"<![CDATA[ a <b> ]]>",
        b"<!-- c",
        b"<?xml version='1.0'?>",
        b"'; DROP TABLE accounting_project; --",
        b"<a><b><c>",
    ],
)
def test_a_strange_project_name_is_kept_and_costs_no_other_project(name: bytes) -> None:
    request = parse_request(two_projects(name))
    assert [project.project_name for project in request.projects] == [name.decode(), "Plain"]
    assert [project.url for project in request.projects] == ["http://a.example.org/", "http://b.example.org/"]
    assert [project.totals for project in request.projects] == [WORK_MICRO, WORK_MICRO]
    assert request.host_info


def test_a_name_that_closes_itself_changes_neither_url_nor_totals() -> None:
    name = b"x</project_name><url>http://b.example.org/</url><cpu_ec>9</cpu_ec><project_name>y"
    request = parse_request(two_projects(name))
    assert [project.url for project in request.projects] == ["http://a.example.org/", "http://b.example.org/"]
    assert [project.totals for project in request.projects] == [WORK_MICRO, WORK_MICRO]


@pytest.mark.parametrize("closing", [b"</project_name>", b"</cpu_ec>", b"</url>", b"</hostid>"])
def test_an_unclosed_tag_loses_no_other_project(closing: bytes) -> None:
    body = two_projects(b"Name").replace(closing, b"", 1)
    request = parse_request(body)
    assert [project.url for project in request.projects] == ["http://a.example.org/", "http://b.example.org/"]
    assert [project.totals for project in request.projects] == [WORK_MICRO, WORK_MICRO]


def test_an_unclosed_project_ends_where_the_next_begins() -> None:
    request = parse_request(two_projects(b"Name").replace(b"</project>", b"", 1))
    assert [project.totals for project in request.projects] == [WORK_MICRO, WORK_MICRO]


def test_an_unclosed_last_project_does_not_hide_the_host() -> None:
    body = two_projects(b"Name")
    last = body.rindex(b"</project>")
    request = parse_request(body[:last] + body[last + len(b"</project>") :])
    assert [project.totals for project in request.projects] == [WORK_MICRO, WORK_MICRO]
    hardware = request.hardware()
    assert hardware is not None
    assert hardware.ncpus == 4


def test_opaque_text_is_handed_back_raw_whatever_it_is() -> None:
    raw = b"<a><b>&lt; </a> ' \" & <![CDATA[ </project> <host>xyz</host>"
    request = parse_request(SentRequest([SentProject()], opaque=raw).printed())
    assert request.opaque == raw.decode()
    assert request.host_token is None
    assert request.client_now == 1_795_248_795.385632


@pytest.mark.parametrize(
    ("opaque", "token"),
    [
        (f"<host>{TOKEN}</host>", TOKEN),
        (f"\n  <host> {TOKEN}\n</host>\n", TOKEN),
        (f"<host>{TOKEN}{TOKEN}</host>", TOKEN + TOKEN),
        (f"<host>{TOKEN[:-1]}</host>", None),
        (f"<host>{TOKEN}{TOKEN}0</host>", None),
        (f"<host>{TOKEN[:-1]}g</host>", None),
        (f"<host>{TOKEN}' OR 1=1 --</host>", None),
        ("<host_id>7</host_id>", None),
        (TOKEN, None),
    ],
)
def test_only_our_own_form_of_host_id_is_taken(opaque: str, token: str | None) -> None:
    assert parse_request(SentRequest(opaque=opaque.encode()).printed()).host_token == token


def test_a_huge_opaque_is_cut() -> None:
    request = parse_request(SentRequest(opaque=b"x" * 100_000).printed())
    assert request.opaque == "x" * 1024


def test_preferences_are_hopped_over_whatever_is_in_them() -> None:
    preferences = (
        b"<global_preferences>\n<authenticator>stolen</authenticator><project><url>http://x.example.org/</url>"
        b"</project> a & b <unclosed> <host_info><p_ncpus>999</p_ncpus>\n</global_preferences>\n"
    )
    request = parse_request(SentRequest([SentProject()], preferences=preferences).printed())
    assert len(request.projects) == 1
    assert request.authenticator == "be834110a013b1306352b55339acd440"
    hardware = request.hardware()
    assert hardware is not None
    assert hardware.ncpus == 4


def test_credentials_in_text_copied_after_them_do_not_count() -> None:
    preferences = b"<global_preferences></global_preferences><authenticator>stolen</authenticator>"
    request = parse_request(SentRequest(preferences=preferences).printed())
    assert request.authenticator == "be834110a013b1306352b55339acd440"


def test_unknown_sections_are_passed_over() -> None:
    results = b"<results><result><name>job</name></result></results><new><project><url>x</url></project></new>"
    request = parse_request(SentRequest(authenticator=b"", name=b"login", preferences=results).printed())
    assert request.name == "login"
    assert request.projects == []


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Zürich-日本".encode(), "Zürich-日本"),
        ("Zürich".encode("latin-1"), "Zürich"),
        (b"a\0b", "a\ufffdb"),
        (b"\x01a\x02", "a"),  # what nobody sees
        (b"R&D <lab>", "R&D <lab>"),
    ],
)
def test_host_names_of_any_encoding_are_taken(raw: bytes, text: str) -> None:
    assert parse_request(SentRequest(domain_name=raw).printed()).domain_name == text


@pytest.mark.parametrize("tag", [b"host_info", b"net_stats", b"time_stats", b"opaque"])
def test_a_missing_section_is_no_error(tag: bytes) -> None:
    body = SentRequest([SentProject(totals=WORK)], opaque=b"<host>%s</host>" % TOKEN.encode()).printed()
    start, end = body.index(b"<%s>" % tag), body.index(b"</%s>" % tag) + len(tag) + 3
    request = parse_request(body[:start] + body[end:])
    assert request.projects[0].totals == WORK_MICRO
    assert (request.hardware() is None) == (tag == b"host_info")
    assert (request.hardware_digest == b"") == (tag == b"host_info")
    assert (request.client_now is None) == (tag == b"time_stats")
    assert (request.contact()["net_stats"] == {}) == (tag == b"net_stats")
    assert (request.host_token is None) == (tag == b"opaque")


def test_a_request_with_nothing_in_it_is_read() -> None:
    request = parse_request(b"<acct_mgr_request></acct_mgr_request>")
    assert request == AccountManagerRequest()
    assert request.contact() == {"run_mode": "", "d_free": None, "time_stats": {}, "net_stats": {}}
    assert request.version_tuple == (0, 0, 0)


@pytest.mark.parametrize("body", [b"", b"\0", b"<html><body>hello</body></html>", b"name=x&passwd=y"])
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="acct_mgr_request: the message does not begin with this element"):
        parse_request(body)


def test_a_request_that_was_cut_off_is_refused() -> None:
    body = SentRequest([SentProject(), SentProject()]).printed().rstrip()
    # Taken for whole, it would make its missing projects look detached.
    for end in range(60, len(body), 7):
        with pytest.raises(ProtocolError, match="acct_mgr_request"):
            parse_request(body[:end])


def test_a_body_over_a_mebibyte_is_refused() -> None:
    body = SentRequest().printed()
    fill = b"<global_preferences>%s</global_preferences>"
    room = (1 << 20) - len(body) - len(fill) + 2
    assert parse_request(SentRequest(preferences=fill % (b" " * room)).printed()).run_mode == "auto"
    with pytest.raises(ProtocolError, match="body: larger than 1048576 bytes"):
        parse_request(SentRequest(preferences=fill % (b" " * (room + 1))).printed())


def test_eight_hundred_projects_are_read_and_more_are_refused() -> None:
    projects = [SentProject(f"http://p{n}.example.org/") for n in range(801)]
    request = parse_request(SentRequest(projects[:800]).printed())
    assert [project.url for project in request.projects] == [project.url for project in projects[:800]]
    assert request.host_info
    body = SentRequest(projects).printed()
    with pytest.raises(ProtocolError, match="project: more than 800 projects"):
        parse_request(body)
    # 5,000 of the shortest, so that the size of the body is not what is refused
    with pytest.raises(ProtocolError, match="project: more than 800 projects"):
        parse_request(
            body.replace(b"<project>", b"<project><url>http://x.example.org/</url></project>" * 4 + b"<project>")
        )


def test_deep_nesting_is_refused() -> None:
    deep = b"<a>%s%s</a>" % (b"<b>" * 5000, b"</b>" * 5000)
    with pytest.raises(ProtocolError, match="a: nested deeper than 32 levels"):
        parse_request(SentRequest(preferences=deep).printed())


def test_too_many_elements_are_refused() -> None:
    with pytest.raises(ProtocolError, match="elements: more than 20000"):
        parse_request(SentRequest(preferences=b"<a>1</a>" * 20_001).printed())


@pytest.mark.parametrize("field", ["name", "password_hash", "authenticator"])
def test_credentials_that_no_client_could_hold_are_refused(field: str) -> None:
    body = b"<acct_mgr_request><%s>%s</%s></acct_mgr_request>"
    tag = field.encode()
    assert getattr(parse_request(body % (tag, b"x" * 255, tag)), field) == "x" * 255
    with pytest.raises(ProtocolError, match=f"{field}: longer than 255 characters"):
        parse_request(body % (tag, b"x" * 256, tag))


BAD = [
    b"nan", b"-nan", b"inf", b"-inf", b"-1.000000", b"", b" ", b"text", b"0x10", b"1e400", b"1e300",
    b"1e15", b"1_0", b"<b>1</b>", b"1\0", b"\xff",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize("kind", KINDS[:4])
def test_a_bad_amount_is_a_fault_of_its_own_and_no_more(kind: str, text: bytes) -> None:
    (project,) = with_element(kind, text).projects
    assert (project.totals, project.fault) == (WORK_MICRO._replace(**{kind: 0}), None)
    fault = Message("total_no_amount", kind=kind).packed()
    # A sum with nan or infinity in it never becomes right.
    assert project.unreadable == (Unreadable(kind, fault, text.strip(b"- ") in (b"nan", b"inf")),)
    assert project.url == "http://project.example.org/"


@pytest.mark.parametrize("text", [*BAD, b"99999999999", b"2147483648", b"1.5"])
@pytest.mark.parametrize("kind", KINDS[4:])
def test_a_bad_count_of_jobs_is_a_fault_of_its_own_and_no_more(kind: str, text: bytes) -> None:
    (project,) = with_element(kind, text).projects
    assert (project.totals, project.fault) == (WORK_MICRO._replace(**{kind: 0}), None)
    assert project.unreadable == (Unreadable(kind, Message("total_no_count", kind=kind).packed()),)


@pytest.mark.parametrize("text", [b"-nan(ind)", b"nan(snan)", b"1.#INF", b"-1.#IND00", b"1.#QNAN", b"Infinity"])
def test_clients_of_windows_write_a_sum_that_is_no_number_in_other_words(text: bytes) -> None:
    (project,) = with_element("gpu_ec", text).projects
    assert [each.is_lasting for each in project.unreadable] == [True]


def test_totals_of_which_none_can_be_read_are_the_projects_fault() -> None:
    printed = SentRequest([SentProject(totals=WORK)]).printed()
    for kind in KINDS:
        printed = re.sub(rb"<%b>[^<]*<" % kind.encode(), rb"<%b>x<" % kind.encode(), printed)
    (project,) = parse_request(printed).projects
    assert (project.totals, project.unreadable) == (None, ())
    assert str(Message.from_packed(project.fault or "")) == (
        "cpu_ec is not a finite decimal number from 0 to below 1e15"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_totals_of_which_one_is_missing_are_a_fault(kind: str) -> None:
    body = SentRequest([SentProject(totals=WORK), SentProject(totals=WORK)]).printed()
    tag = kind.encode()
    start, end = body.index(b"<%s>" % tag), body.index(b"</%s>" % tag) + len(tag) + 3
    first, second = parse_request(body[:start] + body[end:]).projects
    assert (first.totals, first.fault) == (WORK_MICRO._replace(**{kind: 0}), None)
    assert first.unreadable == (Unreadable(kind, Message("total_missing", kind=kind).packed()),)
    assert (second.totals, second.fault) == (WORK_MICRO, None)


@pytest.mark.parametrize("text", [b"(select 1)", b"-5", b"99999999999", b"1.5", b"nan"])
def test_a_host_id_that_is_none_counts_as_none(text: bytes) -> None:
    assert with_element("hostid", text).projects[0].hostid == 0


@pytest.mark.parametrize("text", [b"nan", b"-1", b"1e400", b"", b"text"])
def test_a_share_or_duration_that_is_none_is_left_out(text: bytes) -> None:
    assert with_element("resource_share", text).projects[0].resource_share is None
    assert with_element("in_progress_dur", text).projects[0].in_progress_dur == 0.0


def test_a_quote_in_a_url_stays_a_quote() -> None:
    url = "http://x.example.org/' OR '1'='1/"
    assert parse_request(SentRequest([SentProject(url)]).printed()).projects[0].url == url


def test_the_same_element_twice_in_a_project_counts_once() -> None:
    (project,) = with_element("nrpc_failures", b"7</nrpc_failures><nrpc_failures>9").projects
    assert project.nrpc_failures == 9
    assert project.totals == WORK_MICRO


def test_resources_without_work_are_limited() -> None:
    many = tuple(f"gpu{n}" for n in range(100))
    (project,) = parse_request(SentRequest([SentProject(no_work=("CPU", "x" * 100, "CPU", *many))]).printed()).projects
    assert project.no_work[:3] == ("CPU", "x" * 64, "gpu0")
    assert len(project.no_work) == 32


def test_statistics_that_are_no_numbers_are_not_stored() -> None:
    body = SentRequest().printed().replace(b"0.999988", b"nan").replace(b"3065951.010948", b"1e400")
    body = body.replace(b"5676499.067179", b"1.2.3").replace(b"80868081664.000000", b"inf")
    contact = parse_request(body).contact()
    assert contact["net_stats"] == {}
    assert contact["time_stats"] == {"connected_frac": -1.0, "now": 1_795_248_795.385632}
    assert contact["d_free"] is None


@pytest.mark.parametrize("now", [b"nan", b"-5", b"1e400", b"", b"text", b"1e12"])
def test_a_clock_that_is_none_is_none(now: bytes) -> None:
    body = SentRequest().printed().replace(b"1795248795.385632", now)
    assert parse_request(body).client_now is None


def test_alternative_platforms_are_listed() -> None:
    request = parse_request(SentRequest(alt_platforms=("i686-pc-linux-gnu", "x" * 99)).printed())
    assert request.alt_platforms == ("i686-pc-linux-gnu", "x" * 64)


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("http://127.0.0.1:8201/", "http://127.0.0.1:8201/"),
        ("HTTP://Example.ORG", "http://example.org/"),
        (" https://example.org//Path//x ", "https://example.org/Path/x/"),
        ("http://example.org////", "http://example.org/"),
        ("https://example.org:443/a_b/~c", "https://example.org:443/a_b/~c/"),
        ("http://" + "x" * 240 + ".org/ab", "http://" + "x" * 240 + ".org/ab/"),
    ],
)
def test_a_url_gets_the_form_that_clients_keep(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical
    assert canonical_url(canonical) == canonical


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "begin with http"),
        ("example.org/", "begin with http"),
        ("http:/example.org/", "begin with http"),
        ("ftp://example.org/", "begin with http"),
        ("http://localhost:8201/", "dot"),
        ("http://.org/", "dot"),
        ("http://x./y/", "dot"),
        ("http:///example.org/", "dot"),
        ("http://", "dot"),
        ("http://example.org/a b/", "blanks"),
        ("http://example.org/\n", None),
        ("http://exam\0ple.org/", "control"),
        ("http://example.org/<x>", "<"),
        ("https://good.example.org\\@evil.example.org/", "backslash"),
        ("https://good.example.org/a\\b/", "backslash"),
        ("https://good.example.org@evil.example.org/", "@"),
        ("https://evil.example.org?good.example.org/", "@"),
        ("https://evil.example.org#good.example.org/", "@"),
        ("http://" + "x" * 240 + ".org/abcd", "longer than 255 bytes"),
        ("http://example.org/" + "/" * 100_000 + "x" * 100_000, "longer than 255 bytes"),
    ],
)
def test_a_url_that_no_client_would_attach_to_is_refused(url: str, reason: str | None) -> None:
    if reason is None:  # white space around it is no fault
        assert canonical_url(url) == url.strip()
        return
    with pytest.raises(ValueError, match=reason):
        canonical_url(url)

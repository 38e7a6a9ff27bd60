"""su_rpc.php and su_host_ids.php, as programs for Science United ask them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from django.test import Client

from accounting.choosing.choices import choose_keywords
from accounting.models import AccountSettings, HostProject
from portal.models import ClientKey, User
from portal.people.accounts import issue_client_key, weak_key
from portal.people.security_events import NOWHERE
from portal.wire import credentials
from tests.support.accounting_factories import make_host, make_project

pytestmark = pytest.mark.django_db
ASTRONOMY, PULSARS, CANCER = 1, 3, 14


@pytest.fixture
def key(alice: User) -> str:
    return issue_client_key(alice, ClientKey.Origin.LOOKUP, source=NOWHERE)


def ask(name: str, **given: str | int) -> ElementTree.Element:
    return ElementTree.fromstring(Client().get(f"/{name}.php", given).content)


def chosen(user: User) -> tuple[list[int], list[int]]:
    row = AccountSettings.objects.filter(user=user).first()
    return (row.keywords_yes, row.keywords_no) if row else ([], [])


def test_keywords_are_told_and_set_by_the_key(alice: User, bob: User, key: str) -> None:
    choose_keywords(alice, [ASTRONOMY], [CANCER])
    choose_keywords(bob, [CANCER], [])
    reply = ask("su_rpc", action="get_keywords", auth=key, rpc_key="any")
    pairs = [(row.findtext("id"), row.findtext("yesno")) for row in reply.findall("keyword")]
    assert (reply.tag, pairs) == ("keywords", [("1", "1"), ("14", "-1")])
    # What is not named is "maybe" from then on.
    for _ in range(2):
        assert ask("su_rpc", action="set_keywords", auth=key, **{"3": 1, "14": -1}).tag == "success"
        assert (chosen(alice), chosen(bob)) == (([PULSARS], [CANCER]), ([CANCER], []))
    assert ask("su_rpc", action="set_keywords", auth=key).tag == "success"
    assert chosen(alice) == ([], [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"3": 2}, "neither 1 (yes) nor -1 (no)"),
        ({"999999999": 1}, "no keyword with the number 999999999"),
        ({"003": 1}, "no keyword with the number 003"),
        ({"action": "delete"}, "give get_keywords or set_keywords"),
    ],
)
def test_what_cannot_be_set_changes_nothing(alice: User, key: str, given: dict[str, str | int], words: str) -> None:
    choose_keywords(alice, [ASTRONOMY], [])
    reply = ask("su_rpc", **{"action": "set_keywords", "auth": key, "1": 1, **given})
    assert reply.tag == "error" and words in reply.findtext("error_msg", "")
    assert chosen(alice) == ([ASTRONOMY], [])


def test_only_the_strong_key_opens_them(alice: User, key: str) -> None:
    for wrong in ("", "0" * 32, weak_key(alice.pk, credentials.key_hash(key))):
        assert ask("su_rpc", action="set_keywords", auth=wrong, **{"3": 1}).tag == "error"
        assert ask("su_host_ids", auth=wrong).tag == "error"
    assert chosen(alice) == ([], [])


def test_computers_are_told_with_their_numbers_at_projects(alice: User, bob: User, key: str) -> None:
    project = make_project(master_url="https://alpine.example.org/?a&b/")
    studio, new, other = make_host(alice, "studio"), make_host(alice, "new"), make_host(bob, "other")
    for host, number in ((studio, 77), (new, 0), (other, 78)):
        HostProject.objects.create(host=host, project=project, state={"hostid": number})
    (element,) = ask("su_host_ids", auth=key).findall("host")
    assert element.findtext("su_host_id") == str(studio.pk)
    assert element.findtext("projects/project/url") == "https://alpine.example.org/?a&b/"
    assert element.findtext("projects/project/host_id") == "77"

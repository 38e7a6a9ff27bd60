"""What operators see of requested work: a page in the admin, and metrics."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from portal.models import RequestedWork, User
from portal.requested_work import queue
from tests.support.page_reader import page_of

pytestmark = pytest.mark.django_db
ADDRESS = "/admin/portal/requestedwork/"


@pytest.fixture
def pieces(alice: User, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of alice one is given up, one is done, one runs, and one waits behind bob's, who was never served."""
    monkeypatch.setitem(queue.kinds(), "test", lambda _: None)
    now = timezone.now()
    long_ago = now - queue.LOST_AFTER - dt.timedelta(minutes=1)
    RequestedWork.objects.create(user=alice, kind="test", subject=1, started_at=long_ago, ntries=queue.MAX_TRIES)
    queue.requeue_lost(now)
    queue.ask(alice.pk, "test", [2])
    assert queue.carry_out_next()
    RequestedWork.objects.create(user=alice, kind="test", subject=3, started_at=now, ntries=1)
    queue.ask(alice.pk, "test", [4])
    queue.ask(bob.pk, "test", [11])
    RequestedWork.objects.filter(subject=4).update(asked_at=F("asked_at") - dt.timedelta(hours=1))


def shown(browser: Client, query: str = "") -> dict[str, tuple[str, str]]:
    """State and place by subject."""
    page = page_of(browser, ADDRESS + query)

    def cells(name: str) -> list[str]:
        return [
            cell.text.strip() for cell in page.all("td") if f"field-{name}" in cell.attributes.get("class", "").split()
        ]

    return dict(zip(cells("subject"), zip(cells("state"), cells("place"), strict=True), strict=True))


@pytest.mark.usefixtures("pieces")
def test_the_page_says_whose_what_stands_where(operator: User, client: Client) -> None:
    client.force_login(operator)
    assert shown(client) == {
        "1": ("given up", "-"),
        "2": ("done", "-"),
        "3": ("running", "-"),
        "4": ("waiting", "2"),
        "11": ("waiting", "1"),
    }
    assert set(shown(client, "?q=alice@")) == {"1", "2", "3", "4"}
    assert set(shown(client, "?q=bob@")) == {"11"}


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("state", "subjects"), [("waiting", {"4", "11"}), ("working", {"3"}), ("done", {"2"}), ("given+up", {"1"})]
)
def test_the_page_is_filtered_by_state(operator: User, client: Client, state: str, subjects: set[str]) -> None:
    client.force_login(operator)
    assert set(shown(client, f"?state={state}")) == subjects


@pytest.mark.usefixtures("pieces")
def test_it_is_read_only(operator: User, client: Client) -> None:
    client.force_login(operator)
    piece = RequestedWork.objects.get(subject=4)
    assert client.get(f"{ADDRESS}{piece.pk}/change/").status_code == 200
    assert client.post(f"{ADDRESS}{piece.pk}/change/", {"subject": 5}).status_code == 403
    assert client.post(f"{ADDRESS}{piece.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.get(f"{ADDRESS}add/").status_code == 403


@pytest.mark.usefixtures("pieces")
def test_metrics_say_how_much_waits_works_and_was_given_up(client: Client) -> None:
    families = {
        family.name: family for family in text_string_to_metric_families(client.get("/metrics").content.decode())
    }
    counts = {
        sample.labels["state"]: sample.value
        for sample in families["cobblestone_requested_work"].samples
        if sample.labels["kind"] == "test"
    }
    assert counts == {"waiting": 2, "working": 1, "done": 1, "given_up": 1}
    oldest = {
        sample.labels["kind"]: sample.value for sample in families["cobblestone_requested_work_oldest_seconds"].samples
    }
    # Asked an hour ago; the rest of the test may take its time.
    assert oldest["test"] >= 3600
    assert oldest["data copy"] == oldest["emulator run"] == 0

"""Subjects as a tree, the page of a project, and why a computer has its projects."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounting.choosing.choices import ChoiceRefused, choose_keywords, choose_projects
from accounting.models import AccountSettings, HostLedger, HostProject, Project
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.page_text import text_of

ASTRONOMY, PULSARS, CANCER, DISEASE, GERMANY = 1, 3, 14, 13, 21
CREDIT, HOUR = 1_000_000, 3_600_000_000


@pytest.fixture
def three(db: None) -> list[Project]:
    """Pulsars from Germany, cancer research for GPUs too, and something that nobody has described."""
    key = "k" * 32
    sky, cells, other = (make_project(name, account_key=key) for name in ("Sky", "Cells", "Other"))
    sky.keywords.create(keyword=PULSARS)
    sky.keywords.create(keyword=GERMANY, weight=0.5)
    cells.keywords.create(keyword=CANCER)
    sky.versions.create(platform="x86_64-pc-linux-gnu", processor_type="CPU")
    cells.versions.create(processor_type="CPU")
    cells.versions.create(processor_type="NVIDIA")
    return [sky, cells, other]


def say(client: Client, **answers: str) -> Any:
    return client.post(reverse("keywords"), answers, follow=True)


def answer_of(body: str, id_: int) -> str:
    match = re.search(rf'name="k{id_}" value="(\w+)" checked', body)
    assert match
    return match[1]


def why_of(client: Client, host: Host) -> dict[str, str]:
    """What the page of a computer says of each project under "Why these projects"."""
    body = client.get(reverse("host", args=[host.pk])).content.decode()
    rows = re.findall(r'<th scope="row" class="wide">.*?</span>([^<]+)</th>.*?<td class="why">(.*?)</td>', body, re.S)
    return {name: " ".join(re.sub("<[^>]+>", "", text).split()) for name, text in rows}


def test_every_subject_is_there_and_all_are_maybe(signed_in: Client, three: list[Project]) -> None:
    body = signed_in.get(reverse("keywords")).content.decode()
    assert len(re.findall(r'value="maybe" checked', body)) == 70
    assert "Cancer research" in body and "COVID-19 and virology" in body


def test_answers_are_kept_and_shown(signed_in: Client, alice: User, three: list[Project]) -> None:
    make_host(alice, "studio")
    page = say(signed_in, k1="yes", k13="no", k14="maybe", k999="yes", k2="nonsense")
    body = page.content.decode()
    assert "Saved: yes to 1, no to 1." in text_of(page)
    assert [answer_of(body, id_) for id_ in (ASTRONOMY, DISEASE, CANCER)] == ["yes", "no", "maybe"]
    assert "Preferred now Sky" in text_of(page) and "Excluded now Cells" in text_of(page)
    assert "Excluded because you said no to Disease research." in text_of(page)
    row = AccountSettings.objects.get(user=alice)
    assert (row.keywords_yes, row.keywords_no) == ([1], [13])
    say(signed_in)
    row.refresh_from_db()
    assert (row.keywords_yes, row.keywords_no) == ([], [])


def test_subjects_leave_preferences_alone(alice: User) -> None:
    AccountSettings.objects.create(user=alice, preferences={"max_ncpus_pct": 50})
    choose_keywords(alice, [ASTRONOMY], [])
    assert AccountSettings.objects.get(user=alice).preferences == {"max_ncpus_pct": 50}


def test_what_is_no_subject_or_both_yes_and_no_is_refused(alice: User) -> None:
    for yes, no in (([999], []), ([], [-1]), ([ASTRONOMY], [ASTRONOMY])):
        with pytest.raises(ChoiceRefused):
            choose_keywords(alice, yes, no)
    assert not AccountSettings.objects.exists()


def test_picking_by_hand_is_said_to_decide_alone(signed_in: Client, alice: User, three: list[Project]) -> None:
    choose_projects(alice, {three[0].pk: None})
    assert "You picked projects by hand, so subjects have no effect" in text_of(signed_in.get(reverse("keywords")))


def test_a_computers_page_says_why(signed_in: Client, alice: User, three: list[Project], studio: Host) -> None:
    choose_keywords(alice, [ASTRONOMY], [CANCER])
    assert why_of(signed_in, studio) == {
        "Sky": "You said yes to “Astronomy”.",
        "Other": "It provides work when another project has none.",
        "Cells": "You said no to “Cancer research”.",
    }
    choose_projects(alice, {three[1].pk: None})
    assert why_of(signed_in, studio) == {
        "Cells": "You picked it.",
        "Other": "You picked others.",
        "Sky": "You picked others.",
    }


def test_each_term_of_the_score_is_shown(signed_in: Client, alice: User, three: list[Project], studio: Host) -> None:
    three[0].standings.create(on_gpu=False, target=0.5, got=0.25, boost=2, day=timezone.now().date())
    HostProject.objects.create(host=studio, project=three[0], listed=True)
    choose_keywords(alice, [ASTRONOMY, GERMANY], [])
    text = text_of(signed_in.get(reverse("host", args=[studio.pk])))
    # 1 for the science and 0.5 for the place; ln 100 = 4.61; ln 2 = 0.69 for the boost, and again as it is here
    assert re.search(r"Sky 9\d % You said yes to “Astronomy” and “Germany”. 1\.50 4\.61 0\.69 0\.69 ", text)


def test_a_project_without_work_is_passed_over_and_the_page_says_since_when(
    signed_in: Client, three: list[Project], studio: Host
) -> None:
    now = timezone.now()
    three[2].troubles.create(
        kind="no_work", processor_type="CPU", since=now, last_at=now, volunteers=3, of_volunteers=4
    )
    Project.objects.filter(pk=three[1].pk).update(down_since=now, down_reason="The disks are full.")
    make_project("Fourth", account_key="k")
    why = why_of(signed_in, studio)
    assert why["Other"].startswith("It is skipped for a while. No work for the processors since ")
    assert why["Cells"] == "The project is down. The disks are full."


def test_an_excluded_type_is_kept_and_told(signed_in: Client, three: list[Project], studio: Host) -> None:
    Host.objects.filter(pk=studio.pk).update(coprocs=[{"type": "NVIDIA", "count": 1}])
    page = signed_in.post(reverse("host_wishes", args=[studio.pk]), {"excluded_types": "CPU"}, follow=True)
    assert HostLedger.objects.get(host=studio).excluded_types == ["CPU"]
    assert re.search(r'name="excluded_types" value="CPU"[^>]* checked', page.content.decode())
    # Sky has programs for CPUs alone.
    assert why_of(signed_in, studio)["Sky"].startswith("It has no program for this computer")
    signed_in.post(reverse("host_wishes", args=[studio.pk]), {"excluded_types": "abacus"})
    assert HostLedger.objects.get(host=studio).excluded_types == ["CPU"]
    signed_in.post(reverse("host_wishes", args=[studio.pk]), {})
    assert HostLedger.objects.get(host=studio).excluded_types == []


def test_the_page_of_a_project(signed_in: Client, alice: User, bob: User, three: list[Project]) -> None:
    choose_keywords(alice, [ASTRONOMY], [GERMANY])
    Project.objects.filter(pk=three[1].pk).update(description="Cells divide.\n\nWe count.", summary="Of cells")
    host = make_host(alice, "studio")
    credit(host, three[1], "2026-01-05", (200 * CREDIT, 50 * CREDIT, 2 * HOUR, HOUR, 3, 1))
    credit(make_host(bob, "bobs"), three[1], "2026-01-05", (10**12, 0, HOUR, 0, 3, 1))
    text = text_of(signed_in.get(reverse("project", args=[three[1].pk])))
    assert "Your credit 250" in text and "Cells divide." in text and "Of cells" in text
    assert "Cancer research, Disease research, Biology and Medicine" in text
    assert "all platforms processors and NVIDIA GPU" in text
    assert "studio" in text and "bobs" not in text
    sky = text_of(signed_in.get(reverse("project", args=[three[0].pk])))
    assert "Detection and study of pulsars, Astronomy you said yes" in sky
    assert "Germany, Europe 50 % you said no" in sky
    assert "Current share no work" in sky and "You said no to “Germany”." in sky


def test_a_project_that_is_not_there(signed_in: Client) -> None:
    assert signed_in.get(reverse("project", args=[10**12])).status_code == 404


@pytest.mark.parametrize("name", ["keywords", "project"])
def test_strangers_are_asked_to_log_in(client: Client, three: list[Project], name: str) -> None:
    address = reverse(name, args=[three[0].pk] if name == "project" else [])
    assert client.get(address)["Location"].startswith(reverse("account_login"))
    assert client.post(address).status_code in (302, 405)

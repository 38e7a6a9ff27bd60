"""What recent clients report besides their hardware: containers, brand, a note, and their owner's interests."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from credit.models import App, Result
from portal.models import Host, User
from portal.wire.keywords import KEYWORDS
from scheduler.models import AppKeyword, PlanClass
from scheduler.programs import catalogue
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, messages

pytestmark = pytest.mark.django_db

# A keyword with what it is part of
PARTS = {id_: keyword.kin[1] for id_, keyword in KEYWORDS.items() if keyword.level == 1}
DOCKER = "<docker_version>27.3.1</docker_version>\n"
WSL = (
    "<wsl>\n<distro>\n<distro_name>Ubuntu</distro_name>\n<os_name>Ubuntu</os_name>\n<os_version>24.04</os_version>\n"
    "<is_default>1</is_default>\n<docker_version>{docker}</docker_version>\n{more}</distro>\n</wsl>\n"
)


def app_for(plan_class: str = "", name: str = "alpine", njobs: int = 3) -> App:
    app = make_app(name=name, max_jobs_per_day_init=1000)
    make_version(app, plan_class=plan_class)
    for _ in range(njobs):
        make_result(make_workunit(app, output_files=[], fpops_est=1e9))
    catalogue.forget()
    return app


@pytest.fixture
def docker_app(db: None) -> App:
    PlanClass.objects.create(name="docker", needs_docker=True)
    return app_for("docker")


def test_jobs_in_docker_go_only_to_computers_that_have_it_and_allow_it(docker_app: App, alice: User) -> None:
    without, refusing, having = computer_of(alice), computer_of(alice), computer_of(alice)
    assert "the applications need Docker" in messages(without.ask(1))[0] and not without.jobs
    refusing.hardware = having.hardware = DOCKER
    assert "the applications need Docker" in messages(refusing.ask(1, dont_use_docker=1))[0] and not refusing.jobs
    having.ask(1)
    assert having.jobs


def test_on_windows_docker_is_that_of_a_linux_that_boinc_may_use(docker_app: App, alice: User) -> None:
    PlanClass.objects.filter(name="docker").update(needs_wsl=True)
    catalogue.forget()
    for inside, fields, gets in (
        (WSL.format(docker="27.3.1", more=""), {}, True),
        (WSL.format(docker="", more=""), {}, False),
        (WSL.format(docker="27.3.1", more="<disallowed/>\n"), {}, False),
        (WSL.format(docker="27.3.1", more=""), {"dont_use_wsl": 1}, False),
    ):
        computer = computer_of(User.objects.create_user(f"w{Host.objects.count()}@example.org"))
        computer.hardware, computer.os_name = inside, "Microsoft Windows 11"
        computer.ask(1, **fields)
        assert bool(computer.jobs) == gets, inside
        assert Host.objects.latest("pk").os_name == "Microsoft Windows 11", "not that of the Linux below it"


def test_what_a_client_says_is_kept_and_its_owner_sees_it(alice: User, client: Client) -> None:
    computer = computer_of(alice)
    computer.ask()
    computer.hardware = DOCKER + WSL.format(docker="26.1", more="")
    note = "<client_opaque>\n<![CDATA[\nroom 7 & <b>\n]]>\n</client_opaque>\n"
    computer.ask(extra=f"{note}<client_brand>HTC Power To Give</client_brand>\n", dont_use_docker=1)
    host = Host.objects.get()
    assert (host.docker_version, host.client_brand, host.not_used) == ("27.3.1", "HTC Power To Give", ["docker"])
    assert host.wsl == [{"name": "Ubuntu", "system": "Ubuntu 24.04", "docker_version": "26.1", "is_allowed": True}]
    assert host.client_opaque == "room 7 & <b>"
    client.force_login(alice)
    page = client.get(reverse("host", args=[host.pk])).content.decode()
    assert "27.3.1" in page and "HTC Power To Give" in page and "room 7 &amp; &lt;b&gt;" in page
    computer.hardware = ""
    computer.ask()
    host.refresh_from_db()
    assert (host.docker_version, host.wsl, host.client_brand, host.client_opaque, host.not_used) == ("", [], "", "", [])


def test_a_brand_or_a_note_of_any_length_is_cut_and_harms_nothing(alice: User) -> None:
    computer = computer_of(alice)
    extra = f"<client_opaque>{'x' * 100_000}\0</scheduler_request></client_opaque>\n<client_brand>{'b' * 9999}"
    computer.ask(
        extra=f"{extra}</client_brand>\n<user_keywords><yes>nan</yes><no>-1</no><no>1e304</no></user_keywords>\n"
    )
    host = Host.objects.get()
    assert (len(host.client_brand), len(host.client_opaque)) == (64, 1000)


def keywords(yes: str = "", no: str = "") -> str:
    """As clients write them for each project, from their account manager's reply."""
    numbers = [("yes", each) for each in yes.split()] + [("no", each) for each in no.split()]
    return "<user_keywords>\n" + "".join(f"   <{kind}>{n}</{kind}>\n" for kind, n in numbers) + "</user_keywords>\n"


def test_jobs_about_what_a_volunteer_said_no_to_are_not_sent(alice: User) -> None:
    app = app_for()
    part = next(iter(PARTS))
    AppKeyword.objects.create(app=app, keyword=part)
    catalogue.forget()
    whole = PARTS[part]
    for no in (part, whole):
        computer = computer_of(alice)
        assert (
            "you excluded the subjects of the applications" in messages(computer.ask(1, extra=keywords(no=f"{no}")))[0]
        )
        assert not computer.jobs
    computer = computer_of(alice)
    computer.ask(1, extra=keywords(no="99999"))
    assert computer.jobs


def test_jobs_about_what_a_volunteer_likes_come_first_and_then_others(alice: User) -> None:
    liked, other = app_for(name="liked", njobs=3), app_for(name="other", njobs=30)
    other.weight = 1000
    other.save()
    AppKeyword.objects.create(app=liked, keyword=next(iter(PARTS)))
    catalogue.forget()
    computer = computer_of(alice)
    for _ in range(3):
        computer.ask(0, 1, extra=keywords(yes=f"{PARTS[next(iter(PARTS))]}"))
    apps = [Result.objects.get(name=name).app_id for name in computer.jobs]
    assert apps[:3] == [liked.pk] * 3
    catalogue.forget()
    computer.ask(0, 1, extra=keywords(yes=f"{next(iter(PARTS))}"))
    assert Result.objects.get(name=computer.jobs[-1]).app_id == other.pk


def test_operators_see_how_many_computers_have_each_brand(client: Client, operator: User, alice: User) -> None:
    for number, brand in enumerate(("HTC Power To Give", "HTC Power To Give", "Charity Engine")):
        computer_of(alice, cpid=f"{number:032x}", name=f"pc{number}").ask(
            extra=f"<client_brand>{brand}</client_brand>\n"
        )
    client.force_login(operator)
    page = client.get("/admin/portal/host/", {"_facets": "True"}).content.decode()
    assert "HTC Power To Give (2)" in page and "Charity Engine (1)" in page

"""A preview is requested, queued and carried out; its page shows its progress, the changes, and how exact it is."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, AppVersion, LoggedPass, Preview, ProcessorType, RuleSet
from credit.previews import texts, worker
from credit.previews.request import FRESH, KIND, MAX_UNFINISHED, TooManyPreviewsError, ask
from credit.previews.settings import UnknownSettingError
from credit.statistics import pass_log
from credit.statistics.feeder import feed
from portal.models import Host, RequestedWork, User
from portal.requested_work import queue
from tests.support.credit_factories import make_app, make_version
from tests.support.page_text import text_of
from tests.support.validator_runs import LATER, done, validate

pytestmark = pytest.mark.django_db

CHECK = {"app": {"host_scale_check": [False, True]}}
CAP = {"app": {"max_granted_credit": [None, 1.0]}}


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss@example.org", "a long password", name="Boss")


def work(app: App, version: AppVersion, hosts: list[Host], passes: int = 3, **fields: Any) -> None:
    """Passes an hour apart, each of four workunits: single results of 27.8 credits each, 3,000 s × 4 GFLOPS."""
    for number in range(passes):
        for host in hosts:
            done(app, version, host, **fields)
        validate(app, LATER + number * dt.timedelta(hours=1))
        feed(LATER + number * dt.timedelta(hours=1, minutes=1), app)


def page(client: Client, preview: Preview, **headers: str) -> str:
    response = client.get(f"/admin/credit/preview/{preview.pk}/result/", headers=headers)
    assert response.status_code == 200
    return text_of(response)


def test_an_asked_preview_is_queued_once_and_reused_while_it_is_fresh(app: App, boss: User) -> None:
    now = timezone.now()
    first = ask(boss, app, CHECK, now)
    assert RequestedWork.objects.get(kind=KIND).subject == first.pk
    assert ask(boss, app, {**CHECK, "versions": {}, "reset": []}, now) == first
    assert ask(boss, app, CHECK, now + FRESH) == first
    assert ask(boss, app, CHECK, now + 2 * FRESH) != first


def test_a_setting_that_no_replay_can_show_is_refused_by_name(app: App, boss: User) -> None:
    other = make_version(make_app("other"))
    for changes, words in (
        ({"app": {"weight": [1, 2]}}, "weight"),
        ({"versions": {str(other.pk): {"is_deprecated": [False, True]}}}, "not a version of"),
        ({"reset": [other.pk]}, "not a version of"),
        ({"app": {"max_host_scale": [None, 0]}}, "max_host_scale"),
        ({"app": {"rule_set": ["published", "mine"]}}, "rule_set"),
        ({"apps": {}}, "apps"),
    ):
        with pytest.raises(UnknownSettingError, match=words):
            ask(boss, app, changes, timezone.now())


def test_a_person_has_few_unfinished_previews(app: App, boss: User) -> None:
    now = timezone.now()
    for number in range(MAX_UNFINISHED):
        ask(boss, app, {"app": {"max_granted_credit": [None, number + 1.0]}}, now)
    with pytest.raises(TooManyPreviewsError):
        ask(boss, app, CHECK, now)
    other = User.objects.create_superuser("chief@example.org", "a long password")
    assert ask(other, app, CHECK, now).asked_by == other


def test_the_page_says_what_a_cap_would_do(
    app: App, version: AppVersion, hosts: list[Host], boss: User, client: Client
) -> None:
    work(app, version, hosts)
    preview = ask(boss, app, CAP, timezone.now())
    assert queue.carry_out_next()
    preview.refresh_from_db()
    assert preview.progress == 1
    result = preview.result
    assert result is not None
    # 12e12 FLOPs × 200 / 86,400e9 = 27.8 credits; twelve results, cut to 1 credit each
    assert result["total"]["before"] == pytest.approx(12 * 12e12 * 200 / 86_400e9)
    assert result["total"]["after"] == pytest.approx(12)
    assert result["exact"] == {"nworkunits": 12, "ndifferent": 0, "nparts": 0, "nrecords": 0, "nversions": 0}
    assert [(row["nresults"], row["nhosts"]) for row in result["classes"]] == [(12, 4)]
    assert sum(result["spread"]) == 4
    assert texts.summary(result)[0].startswith("Most recent 12 granted workunits: 96.4 % less credit")
    client.force_login(boss)
    content = page(client, preview)
    for words in (
        "Maximum credit for one job none 1",
        "reproduces the granted credit exactly for all 12 workunits",
        "96.4 %",
        "The grant was cut to the app’s maximum for one task.",
        "computer " + str(hosts[0].pk),
        "CPUs only",
    ):
        assert words in content


def test_withdrawing_a_gpu_version_that_would_make_equal_jobs_unequal_is_warned_of(
    app: App, version: AppVersion, hosts: list[Host], boss: User, client: Client
) -> None:
    """To the letter, a withdrawn version loses its factor, which is 1/4 here: its jobs claim four times as much."""
    App.objects.filter(pk=app.pk).update(rule_set=RuleSet.LETTER, min_version_samples=5)
    app.refresh_from_db()
    gpu = make_version(app, 100, plan_class="cuda", processor_type=ProcessorType.NVIDIA, gpu_usage=1)
    Host.objects.filter(pk=hosts[3].pk).update(coprocs=[{"type": "NVIDIA", "count": 1}])
    for number in range(15):
        for host in hosts[:3]:
            done(app, version, host)
            done(app, gpu, hosts[3], peak_flops=16e9)
        validate(app, LATER + number * dt.timedelta(hours=1))
        feed(LATER + number * dt.timedelta(hours=1, minutes=1), app)
        if number == 2:
            LoggedPass.objects.all().delete()
    preview = ask(boss, app, {"versions": {str(gpu.pk): {"is_deprecated": [False, True]}}}, timezone.now())
    assert preview.app_version == gpu
    worker.carry_out(preview.pk)
    preview.refresh_from_db()
    assert preview.result is not None
    warnings = texts.warnings(preview.result)
    # The factor goes with the first run of the feeder, so three of its 36 results still claim 1:
    # (3 × 1 + 33 × 4) / 36 = 3.75, where the mean is (3.75 + 1) / 2 = 2.375: 58 % more.
    more = "they would earn 58 % more than the mean of all jobs of their size. Now: as much as the mean."
    assert warnings[0] == (
        f"Equal jobs would not earn equal credit. With version 1.00 (cuda), x86_64-pc-linux-gnu {more}"
    )
    assert warnings[1].endswith(more.replace("more", "less"))
    assert "On computers with NVIDIA GPU" in warnings[3]
    client.force_login(boss)
    assert more in page(client, preview)


def test_the_page_says_the_place_in_the_queue_then_the_progress(app: App, boss: User, client: Client) -> None:
    ask(boss, app, CHECK, timezone.now())
    second = ask(boss, app, CAP, timezone.now())
    client.force_login(boss)
    assert "number 2 in the queue" in page(client, second)
    RequestedWork.objects.filter(subject=second.pk).update(started_at=timezone.now())
    Preview.objects.filter(pk=second.pk).update(progress=0.41)
    content = page(client, second, **{"HX-Request": "true"})
    assert "41 % replayed" in content
    assert "<html" not in content


def test_the_progress_moves_with_the_passes(
    app: App, version: AppVersion, hosts: list[Host], boss: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(app, version, hosts)
    preview = ask(boss, app, CAP, timezone.now())
    stored: list[float] = []
    store = worker._store

    def watched(preview: Preview, **columns: Any) -> None:
        stored.append(columns.get("progress", -1.0))
        store(preview, **columns)

    monkeypatch.setattr(worker, "_store", watched)
    monkeypatch.setattr(worker, "REPORT_SECS", 0.0)
    worker.carry_out(preview.pk)
    # Three passes of the validator and the feeder's runs between, each a third
    moved = sorted({round(value, 6) for value in stored})
    assert moved == [0.0, 0.3, 0.6, 0.9, 1.0]


def test_a_preview_of_an_app_whose_facts_are_not_kept_says_so(app: App, boss: User, client: Client) -> None:
    preview = ask(boss, app, CHECK, timezone.now())
    assert queue.carry_out_next()
    client.force_login(boss)
    content = page(client, preview)
    assert "The preview failed." in content
    assert "Nothing can be replayed yet" in content


def test_a_failure_says_why_and_is_tried_again(
    app: App, version: AppVersion, hosts: list[Host], boss: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(app, version, hosts, 1)
    preview = ask(boss, app, CAP, timezone.now())

    def broken(*_: Any) -> None:
        raise ValueError("no such luck")

    monkeypatch.setattr(worker, "figures", broken)
    client.force_login(boss)
    for _ in range(queue.MAX_TRIES):
        with pytest.raises(ValueError, match="luck"):
            queue.carry_out_next()
    content = page(client, preview)
    assert "ValueError: no such luck" in content
    assert "try again" not in content
    monkeypatch.undo()
    # A second request makes a new one.
    assert ask(boss, app, CAP, timezone.now()) != preview


def test_only_those_who_may_see_previews_see_them(app: App, boss: User, client: Client) -> None:
    preview = ask(boss, app, CHECK, timezone.now())
    helper = User.objects.create_user("helper@example.org", "a long password", is_staff=True)
    client.force_login(helper)
    assert client.get(f"/admin/credit/preview/{preview.pk}/result/").status_code == 403


def test_tasks_and_computers_that_are_gone_have_no_link_and_no_name(
    app: App, version: AppVersion, hosts: list[Host], boss: User, client: Client
) -> None:
    work(app, version, hosts)
    preview = ask(boss, app, CAP, timezone.now())
    worker.carry_out(preview.pk)
    path = f"/admin/credit/preview/{preview.pk}/result/"
    client.force_login(boss)
    assert client.get(path).content.count(b'href="/tasks/') == 4
    helper = User.objects.create_user("helper@example.org", "a long password", is_staff=True)
    helper.user_permissions.add(Permission.objects.get(codename="view_preview"))
    reader = Client()
    reader.force_login(helper)
    # Tasks of others are shown to those who may see results.
    assert b'href="/tasks/' not in reader.get(path).content
    app.workunits.all().delete()
    hosts[0].delete()
    assert b'href="/tasks/' not in client.get(path).content
    content = page(client, preview)
    assert content.count("it is no longer kept") == 4
    assert content.count("a computer that was removed") == 1


def test_past_previews_are_listed_and_lead_to_their_pages(app: App, boss: User, client: Client) -> None:
    preview = ask(boss, app, CHECK, timezone.now())
    client.force_login(boss)
    body = client.get("/admin/credit/preview/").content.decode()
    assert f"/admin/credit/preview/{preview.pk}/result/" in body
    assert client.get(f"/admin/credit/preview/{preview.pk}/change/").status_code == 302


def test_only_the_last_workunits_are_kept_and_replayed(
    app: App, version: AppVersion, hosts: list[Host], settings: Settings
) -> None:
    settings.PREVIEW_WORKUNITS = 10
    work(app, version, hosts, 6)
    passes = LoggedPass.objects.filter(app=app, is_feeder=False)
    # Three of the six passes of four workunits each are needed for ten; two fit into them.
    assert passes.count() == 3
    window = pass_log.window(app.pk, 10)
    assert window is not None
    assert window[2] == 8
    window = pass_log.window(app.pk, 2)
    assert window is not None
    assert window[2] == 4

"""The operators' first page: what needs attention comes first, who may see it, how little it asks the database."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from portal.dashboard import reads, record, registry
from portal.dashboard.registry import Figure, Marker, Part
from portal.models import OperatingFigure, User
from portal.ops import heartbeats, metrics
from tests.support.sessions import sign_in_lately

PANELS = "/admin/portal/operatingfigure/panels/"


def everything(permission: str) -> bool:
    """Who reads may see all."""
    return True


@pytest.fixture
def reader(db: None) -> User:
    """Staff, without any permission yet."""
    return User.objects.create_user("reader@example.org", "reader's secret", is_staff=True)


def page(client: Client, path: str = "/admin/") -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def put(name: str, value: float, label: str = "", minutes_ago: float = 1, now: dt.datetime | None = None) -> None:
    at = (now or timezone.now()) - dt.timedelta(minutes=minutes_ago)
    OperatingFigure.objects.create(name=name, label=label, taken_at=at, value=value)


def test_all_is_well_on_a_site_that_runs(desk: Client, taken: None) -> None:
    found = reads.overview(timezone.now(), everything)
    # How much room there is on this machine's disks is not the test's business.
    assert [each.sentence for each in found.attention if "disk" not in each.sentence] == []
    text = page(desk)
    for title in ("Processes and services", "Jobs", "Credit", "Account manager"):
        assert f"{title}</a></h2>" in text
    services = page(desk, "/admin/?panel=services")
    assert "Periodic tasks" in services
    # Tasks in words, with the name that logs have in the tooltip
    assert '<span title="portal.tasks.take_figures">Take the figures of this page</span>' in services


def test_what_needs_attention_comes_first_in_words_with_its_link(desk: Client, taken: None) -> None:
    put("jobs.to_validate_oldest", 7200, "Alpine", minutes_ago=0)
    text = page(desk)
    assert "Needs attention" in text
    first = text.index("Alpine: a workunit has been waiting for validation for more than an hour")
    assert first < text.index('id="panel-services"')
    assert "/admin/credit/workunit/?need_validate__exact=1" in text[first : first + 400]


def test_a_task_that_failed_says_why(desk: Client, taken: None) -> None:
    metrics.count_task("portal.tasks.tidy_up", succeeded=False, fault="OSError: no room")
    assert "The task “Remove what has expired” failed when it last ran: OSError: no room." in page(desk)


def test_without_workers_the_page_says_so_at_once(desk: Client, db: None) -> None:
    text = page(desk)
    assert "No worker is running" in text
    assert "Beat is not running" in text
    assert "No figures were taken in the last day" in text


def test_old_figures_are_said_to_be_old(db: None, running: None) -> None:
    now = timezone.now()
    record.take_all(now - dt.timedelta(hours=2))
    sentences = [each.sentence for each in reads.overview(now, everything).attention]
    assert any("The figures are 2 hours old" in sentence for sentence in sentences)


def test_a_valkey_that_is_down_is_said_and_the_figures_stay(
    desk: Client, taken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redis import ConnectionError as RedisDown

    def refuse() -> object:
        raise RedisDown

    monkeypatch.setattr(heartbeats, "_valkey", refuse)
    text = page(desk)
    assert "Valkey cannot be reached" in text
    assert "PostgreSQL: size" in text


def test_a_series_that_ended_does_not_count(taken: None) -> None:
    now = timezone.now()
    put("jobs.unsent", 900, "gone", minutes_ago=300)
    put("jobs.unsent", 5, "here", minutes_ago=0)
    panel = next(
        each for each in reads.overview(now + dt.timedelta(seconds=5), everything).panels if each.key == "jobs"
    )
    tile = next(tile for tile in panel.tiles if tile.figure.name == "jobs.unsent")
    assert tile.value == 5


def tile_of(name: str, now: dt.datetime) -> reads.Tile:
    return next(
        tile for panel in reads.overview(now, everything).panels for tile in panel.tiles if tile.figure.name == name
    )


def test_a_series_without_a_new_value_is_not_added_to_the_others(db: None, running: None) -> None:
    now = timezone.now()
    put("jobs.failed", 50, "exit status 194", 11, now)
    put("jobs.failed", 40, "exit status 195", 1, now)
    tile = tile_of("jobs.failed", now)
    assert tile.value == 40
    assert tile.parts == [("exit status 195 (a program started by the task failed)", 40)]


def test_the_last_day_shows_series_that_have_ended_since(db: None, running: None) -> None:
    now = timezone.now()
    put("jobs.failed", 50, "exit status 194", 300, now)
    put("jobs.failed", 0, "", 1, now)
    assert [value for _, value in tile_of("jobs.failed", now).points] == [50, 0]


def test_a_figure_that_is_not_taken_any_more_troubles_nobody(db: None, running: None) -> None:
    # Too few results ended since to say which part failed.
    now = timezone.now()
    put("jobs.failed_share", 80, "Alpine", 180, now)
    put("jobs.ended", 3, "error", 1, now)
    tile = tile_of("jobs.failed_share", now)
    assert (tile.value, tile.trouble) == (None, "")
    assert len(tile.points) == 1


def test_series_beyond_the_largest_are_together_what_there_was_at_each_time(db: None) -> None:
    now = timezone.now().replace(minute=30)
    for place in range(8):
        put("jobs.unsent", 1000, f"app{place}", 1, now)
    put("jobs.unsent", 5, "gone", 121, now)
    put("jobs.unsent", 3, "here", 1, now)
    figure = registry.figure("jobs.unsent")
    assert figure is not None
    course = reads.long_course(figure, now - dt.timedelta(days=1), now)
    assert [value for _, value in course.series["other"]] == [5, 3]


def test_a_page_of_many_figures_needs_few_statements(
    desk: Client, taken: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    # Figures and tables; the session, the operator and their authenticators are the others.
    with django_assert_max_num_queries(3):
        reads.overview(timezone.now(), everything)
    with django_assert_max_num_queries(8):
        page(desk)
    with django_assert_max_num_queries(8):
        page(desk, PANELS)


def test_who_may_not_see_figures_gets_the_tables_alone(client: Client, reader: User, taken: None) -> None:
    sign_in_lately(client, reader)
    assert "Processes and services" not in page(client)
    for path in (PANELS, "/admin/portal/operatingfigure/history/jobs.unsent/", "/admin/portal/operatingfigure/"):
        assert client.get(path).status_code == 403
    reader.user_permissions.add(Permission.objects.get(codename="view_operatingfigure"))
    assert "Processes and services" in page(client)
    assert client.get(PANELS).status_code == 200


def test_volunteers_and_strangers_are_sent_away(client: Client, signed_in: Client) -> None:
    for path in ("/admin/", PANELS, "/admin/portal/operatingfigure/history/jobs.unsent/"):
        assert signed_in.get(path).status_code == 302
        assert Client().get(path).status_code == 302


def test_a_long_chart_has_its_numbers_as_a_table(desk: Client, db: None) -> None:
    now = timezone.now()
    for minutes_ago in (30, 20, 10):
        put("jobs.unsent", 100 + minutes_ago, "Alpine", minutes_ago, now)
        put("jobs.unsent", 7, "Birch", minutes_ago, now)
    text = page(desk, "/admin/portal/operatingfigure/history/jobs.unsent/?days=1")
    assert len(re.findall(r"<tr><th scope=\"row\">", text)) == 3
    assert ">130<" in text and ">7<" in text
    assert "Alpine (number)" in text
    assert 'id="figure-data"' in text
    assert "server_state__exact=2" in text


def test_an_unknown_figure_is_not_there(desk: Client, db: None) -> None:
    assert desk.get("/admin/portal/operatingfigure/history/none/").status_code == 404
    assert desk.get("/admin/portal/operatingfigure/history/jobs.unsent/?days=x").status_code == 200


def test_of_many_series_the_largest_are_lines_and_the_rest_one(db: None) -> None:
    now = timezone.now()
    for place in range(12):
        put("jobs.unsent", place, f"app{place:02}", now=now)
    figure = registry.figure("jobs.unsent")
    assert figure is not None
    course = reads.long_course(figure, now - dt.timedelta(days=1), now)
    assert list(course.series) == [*(f"app{place:02}" for place in range(11, 3, -1)), "other"]
    assert course.series["other"][0][1] == 0 + 1 + 2 + 3


def test_a_year_has_no_more_points_than_a_chart_can_show(db: None) -> None:
    now = timezone.now()
    OperatingFigure.objects.bulk_create(
        OperatingFigure(name="jobs.unsent", label="a", taken_at=now - dt.timedelta(hours=place), value=place)
        for place in range(0, 24 * 364, 6)
    )
    figure = registry.figure("jobs.unsent")
    assert figure is not None
    course = reads.long_course(figure, now - dt.timedelta(days=366), now)
    assert 300 < len(course.series["a"]) <= reads.MAX_POINTS + 1


def test_markers_are_drawn_and_listed(desk: Client, monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    put("x.y", 1)
    at = timezone.now() - dt.timedelta(hours=1)
    figure = Figure("x.y", "X", markers=lambda since, until: [Marker(at, "probation on", "/admin/credit/app/1/")])
    monkeypatch.setattr(registry, "parts", lambda: [Part("services", [figure])])
    text = page(desk, "/admin/portal/operatingfigure/history/x.y/")
    assert re.search(
        rf'<time[^>]* datetime="{at:%Y-%m-%dT%H:%M}.*</time> <a href="/admin/credit/app/1/">probation on</a>', text
    )
    assert f'"at": {at.timestamp() * 1000}' in text


def test_the_list_of_figures_writes_numbers_as_the_language_does(desk: Client) -> None:
    put("am.rpcs", 332189.560899452)
    desk.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    assert "332\u202f190" in page(desk, "/admin/portal/operatingfigure/")

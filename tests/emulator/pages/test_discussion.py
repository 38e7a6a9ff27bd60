"""Shared experiments can be talked about and copied."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from emulator.files.presets import two_processors_75_25
from emulator.files.scenario_json import from_json
from emulator.models import Comment, Experiment, Run, RunState
from emulator.runs import comments, experiments
from emulator.runs.experiments import ExperimentRefusedError
from portal.models import User
from tests.support.page_text import text_of

DAY_SECS = 86_400.0


@pytest.fixture
def shared(alice: User) -> Experiment:
    """An experiment of Alice's that failed, shared with a link."""
    found = experiments.create(alice, "Why is B late?", "", two_processors_75_25(), 10)
    Run.objects.create(experiment=found, number=1, variant="v", policy="rec", state=RunState.FAILED, fault="f")
    Experiment.objects.filter(pk=found.pk).update(share_token="f" * 32, started_at=timezone.now())
    found.refresh_from_db()
    return found


@pytest.fixture
def bobs(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


def say(client: Client, found: Experiment, text: str, **more: str) -> int:
    return client.post(reverse("emulator_comment", args=[found.share_token]), {"text": text, **more}).status_code


def test_whoever_has_the_link_can_comment_and_everybody_with_the_link_reads_it(
    bobs: Client, bob: User, shared: Experiment
) -> None:
    User.objects.filter(pk=bob.pk).update(name="Bob")
    assert say(bobs, shared, "B is <b>not</b> asked on day 3", run="1", day="3.5") == 302
    comment = Comment.objects.get()
    assert (comment.run, comment.at_secs) == (shared.runs.get(), 3.5 * DAY_SECS)
    page = Client().get(reverse("emulator_run", args=[shared.share_token, 1]))
    text = text_of(page)
    assert "Bob" in text and "day 3, 12:00:00" in text
    assert b"&lt;b&gt;not&lt;/b&gt;" in page.content
    assert f"?at={3.5 * DAY_SECS:.0f}".encode() in page.content
    assert "Add comment" not in text


def test_the_address_of_somebody_without_a_name_is_not_told(bobs: Client, bob: User, shared: Experiment) -> None:
    User.objects.filter(pk=bob.pk).update(name="")
    say(bobs, shared, "hello")
    text = text_of(Client().get(reverse("experiment_shared", args=[shared.share_token])))
    assert "A volunteer" in text and bob.email.split("@")[0] not in text


def test_a_form_sent_twice_is_one_comment(bobs: Client, shared: Experiment) -> None:
    assert [say(bobs, shared, "again"), say(bobs, shared, "again")] == [302, 302]
    assert Comment.objects.count() == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"text": ""}, "This field is required"),
        ({"text": "x" * 2001}, "at most 2000 characters"),
        ({"text": "x", "run": "1", "day": "-1"}, "At least 0."),
        ({"text": "x", "run": "1", "day": "nan"}, "Enter a number"),
    ],
)
def test_what_cannot_be_taken_is_said_beside_it_and_nothing_typed_is_lost(
    bobs: Client, shared: Experiment, data: dict[str, str], said: str
) -> None:
    answer = bobs.post(reverse("emulator_comment", args=[shared.share_token]), data)
    assert answer.status_code == 400
    assert said in text_of(answer) and data["text"].encode() in answer.content
    assert not Comment.objects.exists()


def test_a_moment_after_the_end_is_the_end(bobs: Client, shared: Experiment) -> None:
    say(bobs, shared, "later", run="1", day="1e300")
    assert Comment.objects.get().at_secs == 10 * DAY_SECS


def test_there_are_limits(bob: User, shared: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    monkeypatch.setattr(comments, "A_DAY_MAX", 2)
    for number in range(2):
        comments.add(shared, bob, f"{number}", None, None, now)
    with pytest.raises(ExperimentRefusedError, match="2 comments within a day"):
        comments.add(shared, bob, "more", None, None, now)
    tomorrow = now + dt.timedelta(days=1, seconds=1)
    comments.add(shared, bob, "more", None, None, tomorrow)
    monkeypatch.setattr(comments, "COMMENTS_MAX", 3)
    with pytest.raises(ExperimentRefusedError, match="which is the limit"):
        comments.add(shared, bob, "even more", None, None, tomorrow)


def test_author_and_owner_can_delete_and_nobody_else(
    bobs: Client, signed_in: Client, bob: User, shared: Experiment
) -> None:
    carols = Client()
    carols.force_login(User.objects.create_user("carol@example.org", "secret"))
    for client, answer in ((carols, 404), (Client(), 302), (bobs, 302), (bobs, 302)):
        comment, _made = Comment.objects.get_or_create(experiment=shared, author=bob, text="x", pk=77)
        address = reverse("emulator_comment_delete", args=[shared.share_token, comment.pk])
        assert client.post(address).status_code == answer
    assert not Comment.objects.exists()
    comment = Comment.objects.create(experiment=shared, author=bob, text="x")
    signed_in.post(reverse("emulator_comment_delete", args=[shared.pk, comment.pk]))
    assert not Comment.objects.exists()


def test_what_is_no_longer_shared_takes_no_comments_of_others(bobs: Client, shared: Experiment) -> None:
    key = shared.share_token
    experiments.unshare(shared)
    assert bobs.post(reverse("emulator_comment", args=[key]), {"text": "x"}).status_code == 404


@pytest.mark.parametrize("gone", [{"is_active": False}, {"deletion_asked_at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}])
def test_comments_of_blocked_or_leaving_people_are_hidden(
    signed_in: Client, bob: User, shared: Experiment, gone: dict[str, object]
) -> None:
    Comment.objects.create(experiment=shared, author=bob, text="Look at day 3.")
    page = reverse("experiment", args=[shared.pk])
    assert "Look at day 3." in text_of(signed_in.get(page))
    User.objects.filter(pk=bob.pk).update(**gone)
    assert "Look at day 3." not in text_of(signed_in.get(page))
    # A deletion may be called off, and a block lifted.
    User.objects.filter(pk=bob.pk).update(is_active=True, deletion_asked_at=None)
    assert "Look at day 3." in text_of(signed_in.get(page))


def test_the_form_has_labels_without_a_colon(signed_in: Client, shared: Experiment) -> None:
    html = signed_in.get(reverse("experiment", args=[shared.pk])).content.decode()
    assert ">Your comment</label>" in html


def test_a_moment_needs_a_run(bob: User, shared: Experiment) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Comment.objects.create(experiment=shared, author=bob, text="x", at_secs=1.0)


def test_a_copy_of_a_shared_experiment_is_ones_own_and_says_where_it_is_from(
    bobs: Client, bob: User, signed_in: Client, shared: Experiment
) -> None:
    answer = bobs.post(reverse("experiment_fork", args=[shared.share_token]))
    copy = Experiment.objects.get(owner=bob)
    assert answer["Location"] == reverse("experiment", args=[copy.pk])
    assert (copy.forked_from, copy.started_at, copy.share_token) == (shared, None, None)
    assert from_json(copy.scenario) == from_json(shared.scenario)
    assert "A copy of a shared experiment: Why is B late?" in text_of(bobs.get(answer["Location"]))
    assert "It was copied once." in text_of(signed_in.get(reverse("experiment", args=[shared.pk])))
    experiments.unshare(shared)
    assert "Why is B late? Why" not in text_of(bobs.get(answer["Location"]))
    assert "A copy of a shared" not in text_of(bobs.get(answer["Location"]))
    experiments.delete(shared)
    copy.refresh_from_db()
    assert copy.forked_from is None


def test_ones_own_copy_says_nothing_of_the_kind(signed_in: Client, shared: Experiment) -> None:
    signed_in.post(reverse("experiment_change", args=[shared.pk]))
    assert Experiment.objects.exclude(pk=shared.pk).get().forked_from is None

"""The page of a decision: the round-robin simulation as the policy saw it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from emulator.engine.replay import OTHER_RUN
from emulator.engine.timeline.results import DecisionKind
from emulator.models import Experiment, Replay, Run, RunTimeline
from emulator.pages.texts.moment_texts import in_words
from emulator.runs import experiments, replays
from emulator.runs.packed_timeline import Packed, unpack
from portal.models import RequestedWork, User
from portal.requested_work import queue
from tests.support.emulator_experiments import begin, carry_out, trial
from tests.support.page_text import text_of

GERMAN = {"Accept-Language": "de"}


def done(client: Client, policy: str = "rec", key: str = "s2_gpu_example1") -> tuple[Experiment, Packed]:
    """An experiment with a finished run, and what it keeps."""
    experiment = begin(client, key)
    client.post(reverse("experiment", args=[experiment.pk]), trial(experiment, policies=[policy]))
    carry_out()
    return experiment, unpack(bytes(RunTimeline.objects.get(run__experiment=experiment).data))


def decision_of(packed: Packed, kind: DecisionKind) -> int:
    """The last decision of a kind."""
    return max(number for number, its_kind in enumerate(packed["decisions.kind"]) if its_kind == kind)


def address(experiment: Experiment, number: int) -> str:
    return reverse("emulator_decision", args=[experiment.pk, 1, number])


def test_a_request_is_shown_with_what_the_client_knew(signed_in: Client) -> None:
    experiment, packed = done(signed_in)
    number = decision_of(packed, DecisionKind.ASK)
    page = address(experiment, number)
    assert "the run is repeated up to it" in text_of(signed_in.get(page))
    assert signed_in.post(page).status_code == 302
    assert "The run is" in text_of(signed_in.get(page))
    assert carry_out() == 1
    moment: Any = Replay.objects.get().moment
    assert [row["kind"] for row in moment["processors"]] == ["CPU", "NVIDIA"]
    text = text_of(signed_in.get(page))
    asked = packed.texts["projects"][int(packed["decisions.project"][number])]
    assert f"So {asked} was asked for" in text and "Asked." in text
    assert "CPU: up to the end of the buffer, 14.4 h, " in text
    drawn = signed_in.get(page).content.decode()
    assert drawn.count('class="moment__bar"') >= 3
    # All times are in hours from the moment, with a comma in German.
    assert "bis zum Ende des Puffers, 14,4 h, fehlten" in text_of(signed_in.get(page, headers=GERMAN))


def test_the_table_of_decisions_leads_there(signed_in: Client) -> None:
    experiment, packed = done(signed_in)
    html = signed_in.get(reverse("emulator_run", args=[experiment.pk, 1])).content.decode()
    links = [int(number) for number in re.findall(r"/runs/1/decisions/(\d+)/", html)]
    kinds = {int(packed["decisions.kind"][number]) for number in links}
    assert kinds <= {DecisionKind.ASK, DecisionKind.RUN, DecisionKind.STOP} and len(links) > 10


def test_asking_twice_asks_once(signed_in: Client) -> None:
    experiment, packed = done(signed_in)
    page = address(experiment, decision_of(packed, DecisionKind.RUN))
    for _ in range(2):
        signed_in.post(page)
    assert carry_out() == 1
    signed_in.post(page)
    assert carry_out() == 0
    assert "Whom to ask for work" in text_of(signed_in.get(page))


@pytest.mark.parametrize(
    ("policy", "said"), [("debt", "The policy of 2005 knows no such simulation"), ("ltd", "is repeated up to it")]
)
def test_a_policy_without_the_simulation_says_so(signed_in: Client, policy: str, said: str) -> None:
    experiment, packed = done(signed_in, policy, "s1_two_equal_cpu")
    assert said in text_of(signed_in.get(address(experiment, decision_of(packed, DecisionKind.ASK))))


def test_what_the_policy_did_not_decide_has_none(signed_in: Client) -> None:
    experiment, packed = done(signed_in)
    page = address(experiment, decision_of(packed, DecisionKind.END))
    assert "The policy did not make this decision" in text_of(signed_in.get(page))
    assert signed_in.get(address(experiment, 10**6)).status_code == 404


def test_a_run_of_another_version_is_not_explained_with_this_one(signed_in: Client) -> None:
    experiment, packed = done(signed_in)
    Run.objects.update(seed=2)  # as good as an emulator that draws other numbers
    page = address(experiment, decision_of(packed, DecisionKind.ASK))
    signed_in.post(page)
    carry_out()
    assert str(OTHER_RUN) in text_of(signed_in.get(page))
    assert "Der Emulator hat sich geändert" in text_of(signed_in.get(page, headers=GERMAN))


def test_who_has_the_link_sees_it_but_only_people_with_an_account_ask(
    signed_in: Client, client: Client, alice: User
) -> None:
    experiment, packed = done(signed_in)
    token = experiments.share(experiment)
    page = reverse("emulator_decision", args=[token, 1, decision_of(packed, DecisionKind.ASK)])
    stranger = Client()
    assert "Sign in to have the run repeated" in text_of(stranger.get(page))
    assert stranger.post(page).status_code == 302 and not Replay.objects.exists()
    signed_in.post(page)
    carry_out()
    assert "Whom to ask for work" in text_of(stranger.get(page))


@pytest.mark.parametrize(
    ("busy_secs", "said"),
    [
        (7200, "CPU: all would be busy for only 2 h, less than the minimum buffer of 2.4 h."),
        # 2.389 hours are written as 2.4, too.
        (8600, "CPU: all would be busy until just before the end of the minimum buffer, 2.4 h."),
        (8640, "CPU: all would be busy up to the end of the minimum buffer, 2.4 h."),
        (8700, "CPU: all would be busy up to the end of the minimum buffer, 2.4 h."),
        (9000, "CPU: all would be busy for 2.5 h, which is beyond the minimum buffer of 2.4 h."),
    ],
)
def test_two_times_that_differ_are_not_told_with_the_same_number(busy_secs: float, said: str) -> None:
    processor = {"kind": "CPU", "instances": 1, "idle": 0.0, "saturated_secs": busy_secs, "shortfall_secs": 0.2}
    moment = {"processors": [processor], "buffer_min_secs": 8640.0, "buffer_total_secs": 51_840.0}
    words = in_words({**moment, "request": None, "jobs": [], "was_searched": False}, ["A"])
    # That less than half a second of work is missing is not worth a sentence.
    assert len(words) == 2 and words[0].replace("\N{NO-BREAK SPACE}", " ") == said


def test_a_replay_that_is_given_up_can_be_asked_for_again(signed_in: Client) -> None:
    experiment, packed = done(signed_in)
    page = address(experiment, decision_of(packed, DecisionKind.ASK))
    signed_in.post(page)
    replay = Replay.objects.get()
    for _ in range(queue.MAX_TRIES):
        RequestedWork.objects.filter(kind=replays.REPLAY).update(started_at="2026-01-01T00:00Z", ntries=queue.MAX_TRIES)
        queue.put_back(replays.REPLAY, [replay.pk])
    assert "because of a fault of this site" in text_of(signed_in.get(page))
    signed_in.post(page)
    carry_out()
    assert "Whom to ask for work" in text_of(signed_in.get(page))


def test_requests_have_a_limit_and_old_ones_go(signed_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, packed = done(signed_in)
    monkeypatch.setattr(replays, "WAITING_MAX", 2)
    monkeypatch.setattr(replays, "REPLAYS_MAX", 3)
    runs = [number for number, kind in enumerate(packed["decisions.kind"]) if kind == DecisionKind.RUN]
    for number in runs[:2]:
        assert signed_in.post(address(experiment, number)).status_code == 302
    refused = signed_in.post(address(experiment, runs[2]))
    assert refused.status_code == 429 and "which is the limit" in text_of(refused)
    carry_out()
    for number in runs[2:4]:
        signed_in.post(address(experiment, number))
    assert sorted(Replay.objects.values_list("decision", flat=True)) == runs[1:4]

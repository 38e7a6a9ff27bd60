"""Simulated populations: through the real validator and feeder, with cheaters of each kind."""

from __future__ import annotations

from io import StringIO
from random import Random

import pytest
from django.core.management import CommandError, call_command

from credit.models import App, AppVersionSnapshot, HostAppVersion, Outcome, Result, ValidateState, Workunit
from extras.laboratory.trials.population import KINDS, Cheat, Computer, make_computer, make_report
from tests.support.validator_runs import differences

pytestmark = pytest.mark.django_db


def simulate(*words: str) -> str:
    out = StringIO()
    call_command("simulate_results", *words, stdout=out)
    return out.getvalue()


def test_jobs_are_validated_and_normalised_on_the_way() -> None:
    output = simulate("--hosts", "12", "--jobs", "600", "--validate", "--cheat", "wrong=0.2", "--cheat", "pick=0.2")
    assert output.startswith("600 workunits with")
    assert Workunit.objects.filter(canonical_result__isnull=False).count() == 600
    assert Result.objects.filter(validate_state=ValidateState.INVALID).count() > 0
    assert Result.objects.filter(outcome=Outcome.CLIENT_ERROR).count() > 0
    app = App.objects.get()
    assert app.min_avg_pfc is not None
    assert app.versions.filter(pfc_scale__isnull=False).count() >= 2
    assert AppVersionSnapshot.objects.count() > 20
    assert differences() == []


def test_without_validation_they_wait() -> None:
    simulate("--hosts", "6", "--jobs", "20", "--replicas", "1")
    assert Workunit.objects.filter(need_validate=True).count() == 20
    assert HostAppVersion.objects.filter(host_scale_at__isnull=False).count() > 0


def test_as_many_replicas_as_there_may_be_are_decided() -> None:
    simulate("--hosts", "40", "--jobs", "24", "--replicas", "10", "--validate")
    assert Workunit.objects.filter(canonical_result__isnull=False).count() == 24


@pytest.mark.parametrize(
    "words",
    [
        ("--jobs", "0"),
        ("--hosts", "100001"),
        ("--days", "nan"),
        ("--cheat", "lying=0.1"),
        ("--cheat", "wrong"),
        ("--cheat", "wrong=2"),
        ("--anonymous", "-0.1"),
        ("--app", "two words"),
        ("--hosts", "19", "--replicas", "10"),
    ],
)
def test_what_is_out_of_range_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=words[0]):
        simulate(*words)


def computer(cheat: Cheat) -> Computer:
    return Computer(1, 1, "x86_64-pc-linux-gnu", 4e9, ncpus=2, cheat=cheat)


def test_cheaters_do_what_they_are_named_for() -> None:
    def reports(cheat: Cheat, size: float = 1.0) -> list[tuple[float, float, bool, bool]]:
        who, rng = computer(cheat), Random(3)
        made = [make_report(rng, who, KINDS, 2e13, size) for _ in range(200)]
        return [(r.elapsed_secs, r.peak_flops, r.is_right, r.has_failed) for r in made]

    honest = reports(Cheat.NONE)
    # 2e13 FLOPs at 4 GFLOPS and 52 %, give or take 5 %: 9,135 to 10,096 s
    assert all(9100 < elapsed < 10150 and right and not failed for elapsed, _, right, failed in honest)
    assert {peak for _, peak, _, _ in reports(Cheat.EXAGGERATE)} == {40e9}
    assert 0 < sum(elapsed == 1e304 for elapsed, *_ in reports(Cheat.ONE_TIME)) < 20
    assert 60 < sum(right for _, _, right, _ in reports(Cheat.WRONG)) < 140
    assert not any(failed for *_, failed in reports(Cheat.CHERRY_PICK))
    assert all(failed for *_, failed in reports(Cheat.CHERRY_PICK, size=2.0))
    assert sum(elapsed < 200 for elapsed, *_ in reports(Cheat.SLACK)) == 180


def test_each_way_of_cheating_has_its_part_of_all_computers() -> None:
    cheats = {Cheat.EXAGGERATE: 0.4, Cheat.WRONG: 0.4}
    rng = Random(3)
    made = [make_computer(rng, n, n, anonymous_part=0, cheats=cheats).cheat for n in range(2000)]
    # 800 each, give or take four times sqrt(2000 × 0.4 × 0.6) = 22
    assert all(abs(made.count(cheat) - 800) < 88 for cheat in cheats)

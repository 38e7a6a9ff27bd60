"""The rule set `letter` decides what the credit document says, for projects of random computers and jobs."""

from __future__ import annotations

from random import Random

import pytest

from credit.engine.facts import AppFacts, HostVersionFacts, ProcessorType, ResultFacts, VersionFacts
from credit.engine.normalisation import renew_scales
from credit.engine.passes import ComparedWorkunit, add_samples, decide_batch
from credit.engine.probation import count_error
from credit.engine.rules import Rules
from credit.engine.states import ValidateState
from tests.support import credit_document as document
from tests.support.credit_engine_facts import NOW, about

VALID, INVALID = ValidateState.VALID.value, ValidateState.INVALID.value
LETTER = Rules.letter()
KINDS = [[False], [False, False], [True, True], [False, False, True], [False, True, True]]
"""Whether each version of the app is for GPUs."""


class Twins:
    """A project twice: as the engine has it, and as the document says."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = NOW
        is_gpu = rng.choice(KINDS)
        versions = [document.Version(gpu, len(is_gpu) > 2 and rng.random() < 0.2) for gpu in is_gpu]
        self.project = document.Project(rng.random() < 0.5, versions)
        self.app = AppFacts(1, LETTER, host_scale_check=self.project.host_scale_check)
        self.versions = [
            VersionFacts(
                n,
                processor_type=ProcessorType.NVIDIA if version.is_gpu else ProcessorType.CPU,
                is_deprecated=version.is_deprecated,
            )
            for n, version in enumerate(versions)
        ]
        # Of each computer the version's number, if it runs one, its speed and efficiency, and its two records
        self.records = []
        for _ in range(12):
            number = rng.choice([*range(len(versions)), None]) if rng.random() < 0.9 else None
            speed, part = 10 ** rng.uniform(9, 12), 10 ** rng.uniform(-1, 0)
            twin = document.Record(None if number is None else versions[number])
            self.records.append((number, speed, part, HostVersionFacts(), twin))

    def decide(self, number: int) -> tuple[float | None, float | None]:
        """What the next workunit's results are granted, by the engine and by the document."""
        rng = self.rng
        self.now += rng.uniform(0, 7200)
        est = 10 ** rng.uniform(11, 14)
        quorum = rng.choice([1, 1, 2, 3])
        delay, bound = rng.choice([3600.0, 86400.0]), est * rng.choice([5.0, 100.0])
        chosen = rng.sample(self.records, rng.randint(quorum, quorum + 1))
        states = [VALID if rng.random() < 0.95 else INVALID for _ in chosen]
        results, reports = [], []
        for (version, speed, part, record, twin), state in zip(chosen, states, strict=True):
            if twin.scale_probation and twin.host_scale_time is None:  # the job that begins the spell was sent
                record.host_scale_time = twin.host_scale_time = self.now
            secs = est / (speed * part) * rng.uniform(0.8, 1.25) * rng.choice([*[1.0] * 30, 0.0, 0.01, 30.0])
            sent = self.now - (2 * secs + 60 if rng.random() < 0.97 else secs / 2)
            facts = None if version is None else self.versions[version]
            results.append(ResultFacts(record, facts, secs, speed, sent, self.now, is_anonymous=version is None))
            reports.append(document.Report(twin, state == VALID, secs, speed, sent, self.now))
        workunit = ComparedWorkunit(est, bound, quorum, len(chosen), delay, id=number, states=states)
        workunit.places = range(len(chosen))
        made = decide_batch(self.app, [workunit], results, self.now)
        for one in self.versions:
            add_samples(self.app, one, one.pfc)
            one.samples.clear()
        expected = self.project.validate(est, bound, quorum, delay, reports, self.now)
        if rng.random() < 0.05:
            self.fail(delay)
        return made.workunits[0][2], expected

    def fail(self, delay: float) -> None:
        """A job of some computer ends with an error."""
        *_, record, twin = self.rng.choice(self.records)
        count_error(record, self.now, delay, LETTER)
        twin.error_rate, twin.consecutive_valid = min(1.0, twin.error_rate + 0.1), 0
        twin.scale_probation = True
        twin.host_scale_time = max(twin.host_scale_time or 0.0, self.now + delay)

    def feed(self) -> None:
        renew_scales(self.app, self.versions)
        self.project.feed()


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 170))])
def test_grants_and_statistics_are_those_of_the_document(seed: int) -> None:
    twins = Twins(Random(seed))
    ngranted = 0
    for number in range(500):
        if number % 40 == 0:
            twins.feed()
        granted, wanted = twins.decide(number)
        assert granted == (None if wanted is None else about(wanted, rel=1e-9)), number
        ngranted += wanted is not None
    assert ngranted > 400
    assert twins.app.min_avg_pfc == (None if twins.project.least is None else about(twins.project.least, rel=1e-9))
    for version, release in zip(twins.versions, twins.project.versions, strict=True):
        assert (version.pfc.n, version.pfc.avg or 0.0) == (release.pfc.n, about(release.pfc.value, rel=1e-9))
        assert (version.pfc_scale is None) == (release.scale is None)
    for *_, record, twin in twins.records:
        assert record.pfc.n == twin.pfc.n
        assert (record.consecutive_valid, record.scale_probation) == (twin.consecutive_valid, twin.scale_probation)
        averages = [record.pfc.avg, record.et.avg, record.turnaround.avg, record.error_rate]
        expected = [twin.pfc.value, twin.elapsed.value, twin.turnaround.value, twin.error_rate]
        for average, value in zip(averages, expected, strict=True):
            assert (average or 0.0) == about(value, rel=1e-9)

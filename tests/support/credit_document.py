"""The credit document's arithmetic, written down once more from its text, to compare the rule set `letter` with.

It shares no rule with `credit.engine`. Where the document leaves a choice, it makes the one that
docs/explanation/credit.md states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

COBBLESTONES_PER_FLOP: Final = 200 / 86400e9


@dataclass
class Mean:
    """ "Computing averages": N samples count evenly, later ones by A; after the first they are at most X averages."""

    even: int
    weight: float
    cap: float
    n: int = 0
    value: float = 0.0

    def add(self, sample: float) -> None:
        self.n += 1
        if self.n == 1:
            self.value = sample
            return
        if self.value > 0:
            sample = min(sample, self.cap * self.value)
        self.value += (sample - self.value) * (1 / self.n if self.n <= self.even else self.weight)


@dataclass
class Version:
    is_gpu: bool = False
    is_deprecated: bool = False
    pfc: Mean = field(default_factory=lambda: Mean(100, 0.001, 100.0))
    scale: float | None = None

    @property
    def counts(self) -> bool:
        return not self.is_deprecated and self.pfc.n >= 100 and self.pfc.value > 0


@dataclass
class Record:
    """A version on a host; of the host's own program if there is no ``version``."""

    version: Version | None = None
    pfc: Mean = field(default_factory=lambda: Mean(10, 0.01, 10.0))
    elapsed: Mean = field(default_factory=lambda: Mean(10, 0.01, 10.0))
    turnaround: Mean = field(default_factory=lambda: Mean(10, 0.01, 10.0))
    scale_probation: bool = True
    host_scale_time: float | None = None
    error_rate: float = 0.1
    consecutive_valid: int = 0


@dataclass
class Report:
    record: Record
    is_valid: bool
    secs: float
    peak: float
    sent: float
    received: float


@dataclass
class Project:
    host_scale_check: bool
    versions: list[Version]
    least: float | None = None

    def validate(
        self, est: float, bound: float, quorum: int, delay: float, reports: list[Report], now: float
    ) -> float | None:
        """What each valid result is granted; None if none is valid."""
        for report in reports:
            _count(report.record, report.is_valid, now)
        valid = [report for report in reports if report.is_valid]
        claims = [self._claim(est, bound, report, now) for report in valid]
        samples: list[tuple[Version, float]] = []
        for report, (_, _, is_cheat, has_sample) in zip(valid, claims, strict=True):
            record = report.record
            if is_cheat:
                record.scale_probation, record.error_rate = True, 0.1
                record.host_scale_time = max(record.host_scale_time or 0.0, now + delay)
            elif has_sample:
                if record.version is not None:
                    samples.append((record.version, report.secs * report.peak / est))
                record.pfc.add(report.secs * report.peak / est)
                record.elapsed.add(report.secs / est)
                record.turnaround.add(report.received - report.sent)
        for version, sample in samples:
            version.pfc.add(sample)
        if not valid:
            return None
        if quorum <= 1 and len(valid) == 1:
            return claims[0][0] * COBBLESTONES_PER_FLOP
        normal = [flops for flops, is_normal, *_ in claims if is_normal]
        granted = sum(normal) / len(normal) if normal else self._default(est)
        return granted * COBBLESTONES_PER_FLOP

    def _default(self, est: float) -> float:
        return est if self.least is None else self.least * est

    def _claim(self, est: float, bound: float, report: Report, now: float) -> tuple[float, bool, bool, bool]:
        """FLOPs; whether they are normalised in full; whether the sanity check failed; whether there is a sample."""
        if report.secs * report.peak > bound:
            return self._default(est), False, True, False
        if report.secs < 1e-6:
            return self._default(est), False, False, False
        out = report.received - report.sent
        flops, is_normal = self._normalised(est, min(report.secs, out) * report.peak, report.record, now)
        if report.secs > out:
            return min(flops, self._default(est)), False, False, False
        return flops, is_normal, False, True

    def _normalised(self, est: float, flops: float, record: Record, now: float) -> tuple[float, bool]:
        version, least = record.version, self.least
        starts_again = record.host_scale_time is not None and now < record.host_scale_time
        on_probation = self.host_scale_check and (record.scale_probation or starts_again)
        host_known = record.pfc.n >= 10 and record.pfc.value > 0
        if version is None:
            if least is None or not host_known or on_probation:
                return self._default(est), False
            return flops * least / record.pfc.value, True
        scale = None
        if host_known and version.pfc.n >= 100 and version.pfc.value > 0:
            scale = min(10.0, version.pfc.value / record.pfc.value, 1.0 if on_probation else 10.0)
        is_normal = version.scale is not None and scale is not None and not on_probation
        for factor in (version.scale, scale):
            flops *= 1.0 if factor is None else factor
        return flops, is_normal

    def feed(self) -> None:
        """ "Cross-version normalization"."""
        current = [version for version in self.versions if not version.is_deprecated]
        cpu, gpu = ([v for v in current if v.is_gpu is kind] for kind in (False, True))
        means = [_mean(kind) for kind in (cpu, gpu)]
        known = [mean for mean in means if mean is not None]
        counted = [version for version in current if version.counts]
        for version in self.versions:
            version.scale = None
        if not counted:
            return
        if cpu and gpu and len(known) == 2:
            self.least = min(known)
        elif (not cpu or not gpu) and len(counted) >= 2:
            self.least = known[0]
        else:
            self.least = _mean(counted)
            for version in counted:
                version.scale = 1.0
            return
        assert self.least is not None
        for version in counted:
            version.scale = self.least / version.pfc.value


def _count(record: Record, is_valid: bool, now: float) -> None:
    if not is_valid:
        record.consecutive_valid = 0
        record.error_rate = min(1.0, record.error_rate + 0.1)
        return
    record.consecutive_valid += 1
    record.error_rate *= 0.95
    if record.host_scale_time is not None and now > record.host_scale_time:
        record.scale_probation = False


def _mean(versions: list[Version]) -> float | None:
    counted = [version for version in versions if version.counts]
    if not counted:
        return None
    return sum(v.pfc.value * v.pfc.n for v in counted) / sum(v.pfc.n for v in counted)

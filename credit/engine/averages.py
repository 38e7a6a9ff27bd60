"""Running averages, with and without variance (credit document, "Computing averages").

The first N samples count evenly; later ones have a constant weight A, so the average follows changes. A sample after
the first counts at most X times the average so far. A value that was never measured is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SAMPLE_LIMIT: Final = 1e150
"""Samples of this size or more are refused: their squares, which variances sum up, must stay finite."""


@dataclass(frozen=True, slots=True)
class AverageRules:
    """How samples become an average.

    The first ``even_samples`` count evenly, later ones with ``weight``; each but the first counts at most ``limit``
    times the average so far. The document suggests 10, 0.01 and 10 for hosts, 100, 0.001 and 100 for versions.
    """

    even_samples: int
    weight: float
    limit: float


@dataclass(slots=True)
class Average:
    """The average ``avg`` of ``n`` samples; None before the first."""

    n: int = 0
    avg: float | None = None

    def add(self, sample: float, rules: AverageRules, usual: float = 0.0) -> None:
        """Add a sample. One that is negative, not a number or beyond ``SAMPLE_LIMIT`` changes nothing.

        A sample is capped at ``limit`` times this average or ``usual`` (others' typical sample), whichever is greater:
        after a first sample close to zero, the average would otherwise need thousands of samples to recover.
        """
        if not 0 <= sample < SAMPLE_LIMIT:
            return
        avg = self.avg
        if not self.n or avg is None:
            self.n = 1
            self.avg = sample
            return
        if avg:  # an average of 0 caps nothing: it would stay 0 for ever
            most = rules.limit * (avg if avg > usual else usual)
            if sample > most:
                sample = most
        n = self.n = self.n + 1
        if n <= rules.even_samples:
            self.avg = avg + (sample - avg) / n
        else:
            self.avg = avg + rules.weight * (sample - avg)

    def join(self, other: Average, rules: AverageRules, usual: float = 0.0) -> None:
        """Add the samples of another average, as if each equalled its mean; for ``usual`` see ``add``."""
        if not other.n or other.avg is None:
            return
        if not self.n or self.avg is None:
            self.n, self.avg = other.n, other.avg
            return
        sample = min(other.avg, rules.limit * max(self.avg, usual)) if self.avg else other.avg
        even = max(0, min(rules.even_samples - self.n, other.n))
        avg = (self.avg * self.n + sample * even) / (self.n + even)
        self.avg = sample + (1 - rules.weight) ** (other.n - even) * (avg - sample)
        self.n += other.n


@dataclass(slots=True)
class AverageWithVariance:
    """The average ``avg`` and variance ``var`` of ``n`` samples; None before the first.

    ``q`` is the sum of squared deviations while samples count evenly, and is constant afterwards.
    """

    n: int = 0
    avg: float | None = None
    var: float | None = None
    q: float = 0.0

    def add(self, sample: float, rules: AverageRules) -> None:
        """Add a sample; see ``Average.add``."""
        if not 0 <= sample < SAMPLE_LIMIT:
            return
        avg = self.avg
        if not self.n or avg is None:
            self.n = 1
            self.avg = sample
            self.var = self.q = 0.0
            return
        if avg:
            most = rules.limit * avg
            if sample > most:
                sample = most
        n = self.n = self.n + 1
        d = sample - avg
        if n <= rules.even_samples:
            self.avg = avg = avg + d / n
            q = self.q = self.q + d * (sample - avg)
            self.var = q / n
        else:
            self.avg = avg + rules.weight * d
            var = self.var or 0.0
            self.var = var + rules.weight * (d * d - var)

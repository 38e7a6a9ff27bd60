"""Who had which processor when: read from a run's timeline, for tests of whole runs."""

import numpy as np

from emulator.engine.timeline.results import Result


class Occupation:
    """The blocks of one kind of processor, as arrays."""

    def __init__(self, result: Result, kind: str) -> None:
        assert result.timeline is not None
        timeline = result.timeline
        assert timeline.blocks.complete
        blocks = timeline.blocks
        lanes = [number for number, (of_kind, _) in enumerate(timeline.lanes) if of_kind == kind]
        here = np.isin(np.array(blocks.lane), lanes)
        self.start_secs = np.array(blocks.start_secs)[here]
        self.end_secs = np.array(blocks.end_secs)[here]
        self.project = np.array(blocks.project)[here]
        self.job = np.array(blocks.job)[here]

    def part(self, project: int, from_secs: float, to_secs: float) -> float:
        """The part of that time in which the project had the processor (of one instance)."""
        mine = self.project == project
        starts = np.clip(self.start_secs[mine], from_secs, to_secs)
        ends = np.clip(self.end_secs[mine], from_secs, to_secs)
        return float(np.sum(ends - starts)) / (to_secs - from_secs)

    def first_start(self, project: int, after_secs: float = 0.0) -> float:
        """When a job of the project first starts, or goes on, at or after that time."""
        return float(np.min(self.start_secs[(self.project == project) & (self.start_secs >= after_secs)]))

    def end_of_first_job(self, project: int) -> float:
        """When the job of the project that ran first ran last."""
        mine = self.project == project
        first = self.job[mine][np.argmin(self.start_secs[mine])]
        return float(np.max(self.end_secs[self.job == first]))

    def most_begun(self, project: int) -> int:
        """The largest number of the project's jobs that were begun and not finished at one time."""
        mine = self.project == project
        jobs = np.unique(self.job[mine])
        starts = [(float(np.min(self.start_secs[self.job == job])), 1) for job in jobs]
        ends = [(float(np.max(self.end_secs[self.job == job])), -1) for job in jobs]
        begun = most = 0
        for _, change in sorted(starts + ends):
            begun += change
            most = max(most, begun)
        return most

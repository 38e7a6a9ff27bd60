"""A pass of the validator: the decisions about a batch of workunits whose outputs were compared.

Everything that decides jobs goes through here: the validator, previews of changed settings, the laboratory. They read
the facts, and write or measure the decisions. Workunits are decided in order, each with the records as the workunits
before it left them. Versions' averages do not change: ``add_samples`` follows after the pass. A run of the feeder is
``normalisation.renew_scales``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from credit.engine.averages import Average
from credit.engine.decisions import Decision, count_only_invalid, decide_late, decide_set
from credit.engine.explanation import Explanation
from credit.engine.facts import AppFacts, HostVersionFacts, ResultFacts, VersionFacts, WorkunitFacts
from credit.engine.grants import due
from credit.engine.pairs import waits_for_another
from credit.engine.peaks import peak_ratio, pfc_at_peak
from credit.engine.probation import count_failing, needs_confirmation
from credit.engine.states import ValidateState

# Plain numbers, because each is read several times per result, and reading a member of an enum takes 0.14 µs.
_INIT: Final = ValidateState.INIT.value
_VALID: Final = ValidateState.VALID.value
_INVALID: Final = ValidateState.INVALID.value


@dataclass(slots=True)
class ComparedWorkunit(WorkunitFacts):
    """A workunit with the verdicts on its results, from the comparison of their outputs.

    ``places``: positions in the batch of the results to decide; ``states``: the verdict on each; ``holders``: the
    volunteer of each, if the app has ``pairs``; ``canonical``: the position of the canonical result, if the comparison
    chose one. ``is_waiting``: it waits for somebody else to confirm it, with its quorum raised by one; ``has_waited``:
    the time for that is over. ``earlier_credit``: None for a first decision; if the workunit was decided before, and
    its results are late, what its canonical result was granted (NaN: unknown).
    """

    id: int = 0
    places: Sequence[int] = ()
    states: Sequence[int] = ()
    canonical: int | None = None
    earlier_credit: float | None = None
    holders: Sequence[int] = ()
    is_waiting: bool = False
    has_waited: bool = False


class PassDecisions:
    """The decisions of a pass, as columns, in the order decided."""

    def __init__(self) -> None:
        # For each workunit that was handled: its id, and the position and credit of its canonical result, if this pass
        # chose it. Nothing else was decided about those that another result has to confirm.
        self.workunits: list[tuple[int, int | None, float | None]] = []
        self.waiting_ids: list[int] = []
        # Of those: they were already waiting, and the new result was unfit to confirm them.
        self.still_waiting_ids: list[int] = []
        self.unconfirmed_ids: list[int] = []
        # For each result with a new state; the last three (grant_rules: Grant.code) are None for one that is not valid
        self.places: list[int] = []
        self.states: list[int] = []
        self.grant_rules: list[int | None] = []
        self.credits: list[float | None] = []
        self.claims: list[Explanation | None] = []
        # For each valid result, with the credit that it has not yet received as partial credit
        self.granted_places: list[int] = []
        self.credits_due: list[float] = []

    def extend(self, later: PassDecisions) -> None:
        """Append the decisions about the rest of the batch."""
        for name, column in vars(later).items():
            getattr(self, name).extend(column)

    def _add_state(self, place: int, state: int) -> None:
        self.places.append(place)
        self.states.append(state)
        self.grant_rules.append(None)
        self.credits.append(None)
        self.claims.append(None)

    def _add_valid(self, places: Sequence[int], decision: Decision, results: Sequence[ResultFacts]) -> None:
        count, granted = len(places), decision.grant
        self.places += places
        self.states += [_VALID] * count
        self.grant_rules += [granted.code] * count
        self.credits += [granted.credit] * count
        self.claims += decision.claims
        self.granted_places += places
        self.credits_due += [due(granted, results[place]) for place in places]


def decide_batch(
    app: AppFacts, workunits: Iterable[ComparedWorkunit], results: Sequence[ResultFacts], now: float
) -> PassDecisions:
    """Decide workunits, in order. ``results`` are those of the whole batch, indexed by the workunits' ``places``.

    Changes the (host, version) records of the results, and collects the samples and grants of their versions.
    """
    decided = PassDecisions()
    has_singles = app.target_nresults > 1
    for workunit in workunits:
        if workunit.earlier_credit is not None:
            _decide_late(app, workunit, workunit.earlier_credit, results, now, decided)
        elif (has_singles and _waits(app, workunit, results, now)) or (
            _is_of_pairs(app, workunit) and not workunit.has_waited
        ):
            decided.waiting_ids.append(workunit.id)
        elif workunit.is_waiting and _lacks_only_another(workunit):
            _, unfit = _split(workunit.places, workunit.states, results)
            count_only_invalid(app, workunit, unfit, now)
            _add_others(workunit.places, workunit.states, decided)
            decided.still_waiting_ids.append(workunit.id)
        else:
            _decide_first(app, workunit, results, now, decided)
    return decided


def _waits(app: AppFacts, workunit: ComparedWorkunit, results: Sequence[ResultFacts], now: float) -> bool:
    """Whether the only result is valid, but another has to confirm it because jobs of the app usually have several."""
    if workunit.is_own or workunit.min_quorum > 1 or len(workunit.states) != 1 or workunit.states[0] != _VALID:
        return False
    result = results[workunit.places[0]]
    version = result.version
    sample = result.elapsed_secs * result.peak_flops / workunit.fpops_est
    record = result.host_version
    host = None if record is None else pfc_at_peak(record, peak_ratio(record, result, app.rules))
    return needs_confirmation(app, sample, record, host, None if version is None else version.pfc, now)


def _is_of_pairs(app: AppFacts, workunit: ComparedWorkunit) -> bool:
    """Whether its valid results come only from such pairs, so that another volunteer has to confirm them."""
    if not app.pairs or not workunit.holders:
        return False
    valid = [who for who, state in zip(workunit.holders, workunit.states, strict=True) if state == _VALID]
    return waits_for_another(valid, app.pairs)


def _lacks_only_another(workunit: ComparedWorkunit) -> bool:
    """Whether nothing was decided, but its fit results would be enough without the raised quorum."""
    return workunit.states.count(_INIT) >= workunit.min_quorum - 1 > 0


def _decide_first(
    app: AppFacts, workunit: ComparedWorkunit, results: Sequence[ResultFacts], now: float, decided: PassDecisions
) -> None:
    """Make a first decision: valid results share a grant; without any there is no canonical result yet."""
    places, states = workunit.places, workunit.states
    valid, invalid = _split(places, states, results)
    if valid:
        if workunit.has_waited and (len(valid) < workunit.min_quorum or _is_of_pairs(app, workunit)):
            workunit.is_unconfirmed = True
            decided.unconfirmed_ids.append(workunit.id)
        decision = decide_set(app, workunit, [results[place] for place in valid], invalid, now)
        decided.workunits.append((workunit.id, workunit.canonical, decision.grant.credit))
        decided._add_valid(valid, decision, results)
    else:
        count_only_invalid(app, workunit, invalid, now)
        decided.workunits.append((workunit.id, None, None))
    if len(valid) < len(states):
        _add_others(places, states, decided)


def _decide_late(
    app: AppFacts,
    workunit: ComparedWorkunit,
    credit: float,
    results: Sequence[ResultFacts],
    now: float,
    decided: PassDecisions,
) -> None:
    """Grant late results what the canonical one was granted; by the deployed rules each is decided separately."""
    decided.workunits.append((workunit.id, None, None))
    step = 1 if app.rules.decides_late_singly else len(workunit.places) or 1
    for begin in range(0, len(workunit.places), step):
        places, states = workunit.places[begin : begin + step], workunit.states[begin : begin + step]
        valid, invalid = _split(places, states, results)
        late = [results[place] for place in valid]
        decided._add_valid(valid, decide_late(app, workunit, late, invalid, credit, now), results)
        _add_others(places, states, decided)


def _split(
    places: Sequence[int], states: Sequence[int], results: Sequence[ResultFacts]
) -> tuple[list[int], list[HostVersionFacts | None]]:
    """Return the positions of valid results, and the records of those found wrong."""
    if states.count(_VALID) == len(states):
        return list(places), []
    valid = [place for place, state in zip(places, states, strict=True) if state == _VALID]
    return valid, [results[p].host_version for p, state in zip(places, states, strict=True) if state == _INVALID]


def _add_others(places: Sequence[int], states: Sequence[int], decided: PassDecisions) -> None:
    for place, state in zip(places, states, strict=True):
        if state not in (_INIT, _VALID):
            decided._add_state(place, state)


def count_for_newer(app: AppFacts, records: Iterable[HostVersionFacts]) -> None:
    """Count wrong results of an older version for their hosts' records of newer ones, as failed jobs do."""
    if app.rules.counts_every_ending:
        for record in records:
            count_failing(record, app.rules)


def add_samples(app: AppFacts, version: VersionFacts, average: Average) -> None:
    """Add the samples that a pass collected for a version to its current average."""
    for sample in version.samples:
        average.add(sample, app.rules.version_average, app.usual_sample)

"""The choice of projects for a computer: what is never broken, and what decides."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.engine.choice.facts import (
    CPU,
    Choice,
    Computer,
    ProjectFacts,
    Score,
    Trouble,
    TroubleKind,
    Verdict,
    Volunteer,
    Wish,
)
from accounting.engine.choice.rules import MAX_PROJECTS, MIN_PROJECTS, USUAL_PROJECTS, choose, choose_shares
from portal.wire import keywords

NOW = dt.datetime(2026, 3, 1, 8, tzinfo=dt.UTC)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
TYPES = (CPU, "NVIDIA", "ATI", "intel_gpu")
PLATFORMS = ("x86_64-pc-linux-gnu", "windows_x86_64", "windows_intelx86")
ASTRONOMY, PULSARS, BIOMED, CANCER, EUROPE, GERMANY = 1, 3, 9, 14, 20, 21

keyword_ids = st.sampled_from(sorted(keywords.KEYWORDS))
project_ids = st.integers(1, 40)
weights = st.floats(0.01, 1)
versions = st.frozensets(st.tuples(st.sampled_from(("", *PLATFORMS)), st.sampled_from(TYPES)), max_size=4)
troubles = st.lists(
    st.builds(
        Trouble,
        st.sampled_from(TroubleKind),
        st.sampled_from(("", *TYPES)),
        st.integers(0, 100).map(lambda hours: NOW - hours * HOUR),
    ),
    max_size=2,
).map(tuple)


@st.composite
def projects(draw: st.DrawFn) -> list[ProjectFacts]:
    return [
        ProjectFacts(
            id_,
            draw(st.floats(0, 1e6)),
            is_active=draw(st.integers(0, 9)) > 0,
            is_down=draw(st.integers(0, 9)) == 0,
            keywords=draw(st.dictionaries(keyword_ids, weights, max_size=4)),
            versions=draw(
                st.frozensets(st.tuples(st.sampled_from(("", *PLATFORMS)), st.sampled_from(TYPES)), max_size=4)
            ),
            boosts=draw(st.tuples(st.floats(0.125, 8), st.floats(0.125, 8))),
            troubles=draw(troubles),
        )
        for id_ in draw(st.lists(project_ids, unique=True, max_size=15))
    ]


volunteers = st.builds(
    Volunteer,
    wishes=st.just({}),
    yes=st.frozensets(keyword_ids, max_size=4),
    no=st.frozensets(keyword_ids, max_size=3),
    without_account=st.frozensets(project_ids, max_size=3),
)
computers = st.builds(
    Computer,
    st.integers(1, 2**62),
    st.lists(st.sampled_from(TYPES), unique=True, min_size=1).map(tuple),
    st.sampled_from(("", *PLATFORMS)),
    current=st.frozensets(project_ids, max_size=5),
    excluded=st.frozensets(project_ids, max_size=3),
    excluded_types=st.dictionaries(project_ids, st.frozensets(st.sampled_from(TYPES)), max_size=3),
    paused=st.frozensets(project_ids, max_size=3),
    troubles=st.dictionaries(project_ids, troubles, max_size=3),
)


def could_serve(project: ProjectFacts, volunteer: Volunteer, computer: Computer) -> set[str]:
    """The types that a project could serve by the words of the rules; none if it may not be chosen at all."""
    kin = {each for id_ in project.keywords for each in keywords.KEYWORDS[id_].kin}
    if (
        kin & volunteer.no
        or not project.is_active
        or project.is_down
        or project.id in computer.excluded | volunteer.without_account
    ):
        return set()
    runs = {"", computer.platform}
    if computer.platform == "windows_x86_64":
        runs.add("windows_intelx86")
    serves = {type_ for platform, type_ in project.versions if platform in runs or not computer.platform}
    types = set(computer.types) & serves if project.versions else set(computer.types)
    return types - computer.excluded_types.get(project.id, frozenset())


def score_of(choice: Choice, id_: int) -> Score:
    return next(score for score in choice.scores if score.project_id == id_)


@given(projects(), volunteers, computers)
def test_nothing_is_chosen_that_must_not_be(
    facts: list[ProjectFacts], volunteer: Volunteer, computer: Computer
) -> None:
    choice = choose(facts, volunteer, computer, NOW)
    by_id = {project.id: project for project in facts}
    unbarred = Computer(1, computer.types, computer.platform, excluded=computer.excluded)
    for id_ in choice.shares:
        # What the owner keeps from all processors of a computer that has it stays there, and does nothing.
        rests = id_ in computer.current and id_ in computer.excluded_types
        assert could_serve(by_id[id_], volunteer, unbarred if rests else computer)


@given(projects(), volunteers, computers)
def test_every_type_that_can_be_is_covered_by_two_to_ten_projects(
    facts: list[ProjectFacts], volunteer: Volunteer, computer: Computer
) -> None:
    choice = choose(facts, volunteer, computer, NOW)
    able = {project.id: could_serve(project, volunteer, computer) for project in facts}
    possible = sum(bool(types) for types in able.values())
    assert min(MIN_PROJECTS, possible) <= len(choice.shares) <= MAX_PROJECTS
    coverable = set().union(*able.values())
    assert coverable == set().union(*(able[id_] for id_ in choice.shares))


@given(projects(), volunteers, computers)
def test_every_project_comes_with_a_verdict_and_sane_numbers(
    facts: list[ProjectFacts], volunteer: Volunteer, computer: Computer
) -> None:
    choice = choose(facts, volunteer, computer, NOW)
    by_id = sorted(facts, key=lambda project: project.id)
    assert choose_shares(by_id, volunteer, computer, NOW) == choice.shares
    assert sorted(score.project_id for score in choice.scores) == sorted(project.id for project in facts)
    assert {score.project_id: score.share for score in choice.scores if score.share is not None} == choice.shares
    for score in choice.scores:
        assert score.share is None or 0 <= score.share <= 1e6
        assert 0 <= score.liking <= 2 and abs(score.points) < 100


@given(projects(), volunteers, computers, st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_matter(
    facts: list[ProjectFacts], volunteer: Volunteer, computer: Computer, dice: object
) -> None:
    shuffled = list(facts)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' own kind of Random
    assert choose(shuffled, volunteer, computer, NOW) == choose(facts, volunteer, computer, NOW)


@given(projects(), volunteers, computers)
def test_a_choice_holds_until_a_reason_comes_up(
    facts: list[ProjectFacts], volunteer: Volunteer, computer: Computer
) -> None:
    # Troubles of more than a day, whose grace is over whether a computer has the project or not.
    old = [_with_old_troubles(project) for project in facts]
    first = choose(old, volunteer, _moved(computer, {}), NOW)
    later = choose(old, volunteer, _moved(computer, first.shares), NOW + HOUR)
    assert later.shares == first.shares


def _with_old_troubles(project: ProjectFacts) -> ProjectFacts:
    return ProjectFacts(
        project.id,
        project.share,
        project.is_active,
        project.is_down,
        project.keywords,
        project.versions,
        project.boosts,
        tuple(trouble._replace(since=trouble.since - 2 * DAY) for trouble in project.troubles),
    )


def _moved(computer: Computer, shares: Mapping[int, float]) -> Computer:
    return Computer(
        computer.id,
        computer.types,
        computer.platform,
        frozenset(shares),
        computer.excluded,
        computer.excluded_types,
        computer.paused,
    )


# --- what decides ---------------------------------------------------------------------------------------


def many(number: int, **fields: object) -> list[ProjectFacts]:
    return [ProjectFacts(id_, 100, **fields) for id_ in range(1, number + 1)]  # type: ignore[arg-type]  # by name


def test_equals_get_their_shares_as_the_operator_set_them() -> None:
    facts = [ProjectFacts(1, 100), ProjectFacts(2, 40), ProjectFacts(3, 0)]
    choice = choose(facts, Volunteer(), Computer(7), NOW)
    assert choice.shares == {1: 100, 2: 40, 3: 0}
    assert {score.verdict for score in choice.scores} == {Verdict.EQUAL}


def test_liked_projects_come_before_all_others() -> None:
    facts = many(8)
    facts += [ProjectFacts(9, 1, keywords={PULSARS: 1}), ProjectFacts(10, 1, keywords={ASTRONOMY: 0.5})]
    choice = choose(facts, Volunteer(yes=frozenset({ASTRONOMY})), Computer(7), NOW)
    # Pulsars are part of astronomy. The share goes by the weight: 1 and 0.5.
    assert choice.shares == {9: 1, 10: 0.5}
    assert score_of(choice, 9).because == (ASTRONOMY,)
    assert score_of(choice, 10).liking == 0.5
    assert score_of(choice, 1).verdict == Verdict.LESS_LIKED


def test_a_single_liked_project_gets_another_beside_it_with_a_tenth() -> None:
    facts = [*many(3), ProjectFacts(4, 100, keywords={CANCER: 1})]
    choice = choose(facts, Volunteer(yes=frozenset({BIOMED})), Computer(7), NOW)
    (spare,) = choice.shares.keys() - {4}
    assert choice.shares == {4: 100, spare: 10}
    assert score_of(choice, spare).verdict == Verdict.SECOND_PROJECT


def test_a_yes_to_a_part_is_none_to_the_whole() -> None:
    facts = [ProjectFacts(1, 100, keywords={ASTRONOMY: 1}), *[ProjectFacts(n, 100) for n in (2, 3)]]
    choice = choose(facts, Volunteer(yes=frozenset({PULSARS})), Computer(7), NOW)
    assert choice.shares == {1: 100, 2: 100, 3: 100}


def test_science_and_place_are_liked_apart() -> None:
    facts = [ProjectFacts(1, 100, keywords={PULSARS: 1, ASTRONOMY: 1, GERMANY: 1})]
    choice = choose(facts, Volunteer(yes=frozenset({ASTRONOMY, EUROPE})), Computer(7), NOW)
    # Science counts up to 1, however many keywords say the same; so does the place.
    assert score_of(choice, 1).liking == 2


@pytest.mark.parametrize("no", [PULSARS, ASTRONOMY])
def test_a_no_to_a_keyword_or_what_it_is_part_of_forbids(no: int) -> None:
    facts = [ProjectFacts(1, 100, keywords={PULSARS: 0.1, CANCER: 0.9}), *[ProjectFacts(n, 1) for n in (2, 3)]]
    choice = choose(facts, Volunteer(yes=frozenset({CANCER, PULSARS}), no=frozenset({no})), Computer(7), NOW)
    assert choice.shares == {2: 1, 3: 1}
    assert (score_of(choice, 1).verdict, score_of(choice, 1).because) == (Verdict.VETOED, (no,))


def test_a_computer_gets_nothing_rather_than_what_is_forbidden() -> None:
    facts = many(3, keywords={PULSARS: 1})
    assert choose(facts, Volunteer(no=frozenset({ASTRONOMY})), Computer(7), NOW).shares == {}


def test_projects_picked_by_hand_stand_whatever_their_keywords() -> None:
    facts = [ProjectFacts(1, 100, keywords={PULSARS: 1}), ProjectFacts(2, 40), ProjectFacts(3, 7)]
    wishes = {1: Wish(True, 250), 2: Wish(True, None), 3: Wish(False, 5)}
    choice = choose(facts, Volunteer(wishes, no=frozenset({ASTRONOMY})), Computer(7), NOW)
    assert choice.is_by_hand and choice.shares == {1: 250, 2: 40}
    assert score_of(choice, 3).verdict == Verdict.NOT_PICKED


def test_when_all_that_was_picked_has_ended_keywords_decide() -> None:
    facts = [ProjectFacts(1, 100, is_active=False), ProjectFacts(2, 40), ProjectFacts(3, 7, keywords={PULSARS: 1})]
    choice = choose(facts, Volunteer({1: Wish(True, None)}, no=frozenset({ASTRONOMY})), Computer(7), NOW)
    assert not choice.is_by_hand and choice.shares == {2: 40}


def test_the_one_gpu_project_is_chosen_beside_liked_ones() -> None:
    liked = [ProjectFacts(id_, 100, keywords={CANCER: 1}, versions=frozenset({("", CPU)})) for id_ in range(1, 9)]
    facts = [*liked, ProjectFacts(9, 100, versions=frozenset({("windows_intelx86", "NVIDIA")}))]
    computer = Computer(7, (CPU, "NVIDIA"), "windows_x86_64")
    choice = choose(facts, Volunteer(yes=frozenset({CANCER})), computer, NOW)
    assert len(choice.shares) == USUAL_PROJECTS and choice.shares[9] == 10
    assert (score_of(choice, 9).verdict, score_of(choice, 9).covers) == (Verdict.COVERS_TYPE, ("NVIDIA",))


def test_a_project_with_programs_for_other_computers_only_is_left_out() -> None:
    facts = [ProjectFacts(1, 100, versions=frozenset({("windows_x86_64", CPU)})), ProjectFacts(2, 100)]
    choice = choose(facts, Volunteer(), Computer(7, (CPU,), "x86_64-pc-linux-gnu"), NOW)
    assert choice.shares == {2: 100} and score_of(choice, 1).verdict == Verdict.UNFIT
    # Of a computer that has not said what it is, nothing can be ruled out.
    assert choose(facts, Volunteer(), Computer(7), NOW).shares == {1: 100, 2: 100}


def test_behind_projects_win_more_places_and_more_of_each() -> None:
    facts = [ProjectFacts(id_, 100, boosts=(4.0 if id_ == 1 else 1.0, 1.0)) for id_ in range(1, 21)]
    choices = [choose(facts, Volunteer(), Computer(id_), NOW) for id_ in range(1, 401)]
    got = [sum(1 in choice.shares for choice in choices), sum(2 in choice.shares for choice in choices)]
    # 5 of 20 places: an equal one wins a quarter of the computers, 100 of 400; four times the weight about 60 %.
    assert 70 < got[1] < 130 and 200 < got[0] < 290
    parts = [sum(c.shares.get(id_, 0) / sum(c.shares.values()) for c in choices) for id_ in (1, 2)]
    # Four times the work: 4 of 23 of all, 400 computers' together
    assert parts[0] / 400 == pytest.approx(4 / 23, rel=0.1)
    assert parts[1] / 400 == pytest.approx(1 / 23, rel=0.25)


def test_what_an_owner_keeps_from_all_processors_stays_where_it_is_but_comes_nowhere() -> None:
    excluded_types = {1: frozenset({CPU})}
    assert choose(many(3), Volunteer(), Computer(7, excluded_types=excluded_types), NOW).shares.keys() == {2, 3}
    there = Computer(7, excluded_types=excluded_types, current=frozenset({1, 2, 3}))
    assert choose(many(3), Volunteer(), there, NOW).shares.keys() == {1, 2, 3}


def test_a_project_without_a_program_for_the_computer_is_left_whatever_its_owner_keeps_it_from() -> None:
    facts = [*many(2), ProjectFacts(3, 100, versions=frozenset({("windows_x86_64", CPU)}))]
    there = Computer(
        7,
        platform="x86_64-pc-linux-gnu",
        excluded_types={3: frozenset({CPU})},
        current=frozenset({1, 2, 3}),
    )
    choice = choose(facts, Volunteer(), there, NOW)
    assert choice.shares.keys() == {1, 2} and score_of(choice, 3).verdict == Verdict.UNFIT


def test_a_suspended_project_stays_and_another_one_does_the_work() -> None:
    facts = [ProjectFacts(id_, 100, keywords={CANCER: 1} if id_ < 3 else {}) for id_ in (1, 2, 3)]
    for paused, ids in ((frozenset(), {1, 2}), (frozenset({1}), {1, 2}), (frozenset({1, 2}), {1, 2, 3})):
        computer = Computer(7, current=frozenset({1, 2}), paused=paused)
        assert choose(facts, Volunteer(yes=frozenset({CANCER})), computer, NOW).shares.keys() == ids


# --- no work, no answer ----------------------------------------------------------------------------------


def trouble(kind: TroubleKind = TroubleKind.NO_WORK, type_: str = CPU, hours: float = 1) -> Trouble:
    return Trouble(kind, type_, NOW - hours * HOUR)


def test_a_project_without_work_is_passed_over_with_the_reason_kept() -> None:
    facts = [*many(2), ProjectFacts(3, 100, troubles=(trouble(),))]
    choice = choose(facts, Volunteer(), Computer(7), NOW)
    assert choice.shares == {1: 100, 2: 100}
    assert (score_of(choice, 3).verdict, score_of(choice, 3).troubles) == (Verdict.PASSED_OVER, (trouble(),))


def test_a_computer_keeps_a_project_for_a_day_without_work() -> None:
    for hours, ids in ((23.9, {1, 2, 3}), (24, {1, 2})):
        met = {3: (trouble(TroubleKind.FAILING, "", hours),)}
        computer = Computer(7, current=frozenset({1, 2, 3}), troubles=met)
        assert choose(many(3), Volunteer(), computer, NOW).shares.keys() == ids


def test_a_project_that_has_ended_is_left_at_once() -> None:
    computer = Computer(7, current=frozenset({1, 2, 3}), troubles={3: (trouble(TroubleKind.ENDED, "", 0),)})
    assert choose(many(3), Volunteer(), computer, NOW).shares.keys() == {1, 2}


def test_no_work_for_the_gpu_brings_another_project_for_it_and_keeps_the_first() -> None:
    both = frozenset({("", CPU), ("", "NVIDIA")})
    facts = [ProjectFacts(id_, 100, keywords={CANCER: 1}, versions=both) for id_ in (1, 2)]
    facts.append(ProjectFacts(3, 100, versions=frozenset({("", "NVIDIA")})))
    volunteer = Volunteer(yes=frozenset({CANCER}))
    met = {id_: (trouble(type_="NVIDIA"),) for id_ in (1, 2)}
    at_ease = Computer(7, (CPU, "NVIDIA"), current=frozenset({1, 2}))
    idle = Computer(7, (CPU, "NVIDIA"), current=frozenset({1, 2}), troubles=met)
    assert choose(facts, volunteer, at_ease, NOW).shares == {1: 100, 2: 100}
    assert choose(facts, volunteer, idle, NOW).shares == {1: 100, 2: 100, 3: 10}


def test_projects_in_trouble_are_better_than_none() -> None:
    facts = many(3, troubles=(trouble(hours=100),))
    choice = choose(facts, Volunteer(), Computer(7), NOW)
    assert len(choice.shares) == MIN_PROJECTS


def test_a_project_that_is_down_is_never_chosen() -> None:
    choice = choose(many(3, is_down=True), Volunteer(), Computer(7, current=frozenset({1})), NOW)
    assert choice.shares == {} and {score.verdict for score in choice.scores} == {Verdict.DOWN}

"""The history by processor type: each kind of GPU as far as it can be known, and nothing lost."""

from __future__ import annotations

import datetime as dt

import pytest

from accounting.history.periods import Period, Step
from accounting.history.reads import By, History, Show, read_history
from accounting.models import Project, ProjectVersion
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_project
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db

CREDIT, SEC = 1_000_000, 1_000_000
TODAY = dt.date(2026, 3, 10)


def history(user: User, show: Show = Show.CREDIT, step: Step = Step.DAY) -> History:
    return read_history(user, Period(dt.date(2026, 3, 1), TODAY, "", step), show, By.PROCESSOR, TODAY)


def layers(user: User, show: Show = Show.CREDIT) -> dict[str, int]:
    hist = history(user, show)
    assert sum(layer.total for layer in hist.series) == hist.total == sum(line.total for line in hist.lines)
    return {layer.name: layer.total for layer in hist.series}


def with_gpus(user: User, name: str, *types: str) -> Host:
    coprocs = [{"type": type_, "count": 1, "name": f"a {type_}"} for type_ in types]
    return make_host(user, name, coprocs=coprocs)


@pytest.fixture
def alpha(db: None) -> Project:
    return make_project("Alpha")


def test_each_kind_of_gpu_is_a_layer(alice: User, alpha: Project) -> None:
    credit(with_gpus(alice, "n", "NVIDIA"), alpha, "2026-03-02", (CREDIT, 10 * CREDIT, SEC, 5 * SEC, 1, 0))
    credit(with_gpus(alice, "n2", "NVIDIA"), alpha, "2026-03-03", (0, 5 * CREDIT, 0, SEC, 1, 0))
    credit(with_gpus(alice, "a", "ATI"), alpha, "2026-03-03", (2 * CREDIT, 7 * CREDIT, SEC, 2 * SEC, 1, 2))
    # 10 + 5 of NVIDIA's, 7 of AMD's, 1 + 2 of processors
    assert layers(alice) == {"CPU": 3 * CREDIT, "NVIDIA GPU": 15 * CREDIT, "AMD GPU": 7 * CREDIT}
    assert layers(alice, Show.TIME) == {"CPU": 2 * SEC, "NVIDIA GPU": 6 * SEC, "AMD GPU": 2 * SEC}
    # Which processors a job was for, clients do not say.
    assert layers(alice, Show.JOBS) == {"Succeeded": 3, "Failed": 2}


def test_of_several_kinds_the_programs_of_a_project_decide(alice: User, alpha: Project) -> None:
    beta, gamma = make_project("Beta"), make_project("Gamma")
    ProjectVersion.objects.create(project=alpha, processor_type="ATI")
    ProjectVersion.objects.create(project=alpha, processor_type="apple_gpu")
    ProjectVersion.objects.create(project=beta, processor_type="ATI")
    ProjectVersion.objects.create(project=beta, processor_type="NVIDIA")
    both = with_gpus(alice, "both", "NVIDIA", "ATI")
    for project, amount in ((alpha, 1), (beta, 20), (gamma, 300)):
        credit(both, project, "2026-03-02", (0, amount * CREDIT, 0, 0, 0, 0))
    # Alpha has programs for one of its two kinds, Beta for both; of Gamma nothing is known.
    assert layers(alice) == {"CPU": 0, "AMD GPU": CREDIT, "GPUs of several kinds": 320 * CREDIT}


def test_gpu_work_of_a_computer_that_has_none_now_stays(alice: User, alpha: Project) -> None:
    credit(with_gpus(alice, "bare"), alpha, "2026-03-02", (CREDIT, 4 * CREDIT, 0, 0, 0, 0))
    assert layers(alice) == {"CPU": CREDIT, "GPU": 4 * CREDIT}


def test_a_kind_that_nobody_knows_has_its_own_name(alice: User, alpha: Project) -> None:
    credit(with_gpus(alice, "odd", "quantum"), alpha, "2026-03-02", (0, 4 * CREDIT, 0, 0, 0, 0))
    assert layers(alice) == {"CPU": 0, "quantum": 4 * CREDIT}


def test_other_peoples_computers_play_no_part(alice: User, bob: User, alpha: Project) -> None:
    credit(with_gpus(bob, "bobs", "ATI"), alpha, "2026-03-02", (0, 9 * CREDIT, 0, 0, 0, 0))
    credit(with_gpus(alice, "mine", "NVIDIA"), alpha, "2026-03-02", (0, CREDIT, 0, 0, 0, 0))
    assert layers(alice) == {"CPU": 0, "NVIDIA GPU": CREDIT}


@pytest.mark.parametrize("step", Step)
def test_every_step_has_the_same_sums(alice: User, alpha: Project, step: Step) -> None:
    both = with_gpus(alice, "both", "NVIDIA", "ATI")
    for day in range(1, 10):
        credit(both, alpha, f"2026-03-0{day}", (day * CREDIT, 2 * day * CREDIT, 0, 0, 0, 0))
    hist = history(alice, step=step)
    # 1 + … + 9 = 45
    assert {layer.name: layer.total for layer in hist.series} == {
        "CPU": 45 * CREDIT,
        "GPUs of several kinds": 90 * CREDIT,
    }


def test_three_statements_however_many_computers_and_kinds(alice: User, alpha: Project) -> None:
    assert statements(lambda: history(alice)) == 2
    for number in range(10):
        host = with_gpus(alice, f"node-{number}", "NVIDIA", *(["ATI"] if number % 2 else []))
        credit(host, alpha, "2026-03-02", (0, CREDIT, 0, 0, 0, 0))
    assert statements(lambda: history(alice)) == 3

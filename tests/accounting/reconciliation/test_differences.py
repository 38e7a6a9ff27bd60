"""Why this site's own project granted something else than was estimated: each step, worked out by hand."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from accounting.reconciliation.texts import steps_of
from credit.engine.facts import ProcessorType
from credit.engine.states import Outcome, ValidateState
from credit.models import Result, UserCredit
from credit.statistics.exports import CreditDifferences, differences_of
from portal.models import Host, User
from tests.support.credit_factories import make_app, make_success, make_workunit
from tests.support.page_text import text_of

pytestmark = pytest.mark.django_db

# 432 s at 1 GFLOPS: 432 / 86,400 of a day, 1/200 of 200 credits, is 1 credit.
ONE_CREDIT_SECS = 432.0


@pytest.fixture
def jobs(studio: Host) -> None:
    """A CPU job that was granted, one of a GPU, one that waits, and one that was found wrong."""
    app = make_app()
    same = {"peak_flops": 1e9, "user": studio.owner}
    valid = {"validate_state": ValidateState.VALID, **same}
    # 100 credits × 0.9 × 1.1 = 99 claimed; the mean with another computer is 95.
    make_success(
        make_workunit(app), studio, elapsed_secs=100 * ONE_CREDIT_SECS, version_scale=0.9, host_scale=1.1,
        claimed_credit=99.0, granted_credit=95.0, **valid,
    )  # fmt: skip
    # A fifth of 50 is 10 credits; no factors, and 40 claimed, as the job's bound was in the way.
    make_success(
        make_workunit(app), studio, elapsed_secs=50 * ONE_CREDIT_SECS, processor_type=ProcessorType.NVIDIA,
        claimed_credit=40.0, granted_credit=40.0, **valid,
    )  # fmt: skip
    make_success(
        make_workunit(app), studio, elapsed_secs=7 * ONE_CREDIT_SECS, validate_state=ValidateState.INIT, **same
    )
    make_success(
        make_workunit(app), studio, elapsed_secs=3 * ONE_CREDIT_SECS, validate_state=ValidateState.INVALID, **same
    )


def test_each_step_from_estimated_to_granted(jobs: None, studio: Host) -> None:
    differences = differences_of(studio)
    assert asdict(differences) == pytest.approx(
        {
            "jobs": 4,
            "unchecked_jobs": 1,
            "failed_jobs": 1,
            "estimated": 120,  # 100 + 10 + 7 + 3
            "unchecked": 7,
            "failed": 3,
            "gpu": 40,  # 50 - 10
            "version": -10,  # 90 - 100
            "host": 9,  # 99 - 90
            "rest": -10,  # 40 - 50
            "agreed": -4,  # 95 - 99
            "granted": 135,  # 95 + 40
        }
    )
    steps = steps_of(differences)
    assert sum(step.credit for step in steps[:-1]) == pytest.approx(steps[-1].credit)


def test_what_changed_nothing_is_left_out(studio: Host) -> None:
    assert steps_of(CreditDifferences()) == []
    differences = steps_of(CreditDifferences(jobs=1, estimated=5, granted=5))
    assert [step.label for step in differences] == ["Estimated", "Granted"]


def test_a_run_that_failed_counts_as_failed(jobs: None, studio: Host) -> None:
    Result.objects.update(outcome=Outcome.CLIENT_ERROR, validate_state=ValidateState.INIT, granted_credit=None)
    differences = differences_of(studio.owner)
    assert differences.failed_jobs == 4 and differences.granted == 0
    assert differences.failed == pytest.approx(120)


def test_it_costs_one_statement(jobs: None, studio: Host, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(1):
        differences_of(studio.owner)


def test_home_and_the_computers_page_say_why(client: Client, jobs: None, studio: Host, alice: User) -> None:
    client.force_login(alice)
    for address in (reverse("home"), reverse("host", args=[studio.pk])):
        text = text_of(client.get(address))
        assert "Why they differ for this site’s own project" in text
        assert "Not validated yet -7 1 task has yet to be compared with others." in text


def test_without_a_project_of_its_own_the_site_says_nothing_of_it(
    client: Client, jobs: None, alice: User, settings: Settings
) -> None:
    settings.ROOMS = ["account_manager"]
    client.force_login(alice)
    assert "own project" not in text_of(client.get(reverse("home")))


def test_home_says_that_what_this_sites_project_grants_comes_into_the_total(
    signed_in: Client, jobs: None, alice: User
) -> None:
    UserCredit.objects.create(user=alice, total_credit=95.0)
    page = text_of(signed_in.get(reverse("home")))
    assert "This site’s project has granted 95" in page
    assert "What it grants is added to the total a few times a day" in page

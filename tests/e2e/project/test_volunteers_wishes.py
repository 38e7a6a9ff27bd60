"""A real BOINC client follows what its owner prefers for this project, and its programs are told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from credit.models import App, Result, ValidateState
from portal.models import User
from scheduler.engine.project_preferences import bounded
from scheduler.models import KeptOutput, PlanClass, Trickle, TrickleDown
from scheduler.project_preferences.save import save
from scheduler.submission.job_messages import send_down
from tests.support.boinc_client import GLOBAL_PREFERENCES, BoincClient
from tests.support.own_project import Manage, ask_until, attach
from tests.support.site_process import Site

APPS = Path(__file__).parents[2] / "data" / "apps"
A_QUARTER = "<max_ncpus_pct>25</max_ncpus_pct>\n</global_preferences>"


@pytest.fixture
def many_processors(tmp_path: Path) -> Iterator[BoincClient]:
    """A computer of 16 processors, of which BOINC may use 4."""
    with BoincClient(tmp_path / "sixteen", ncpus=16) as client:
        override = client.directory / "global_prefs_override.xml"
        override.write_text(GLOBAL_PREFERENCES.replace("</global_preferences>", A_QUARTER))
        client.command("--read_global_prefs_override")
        yield client


def told(site: Site, batch_output: KeptOutput) -> list[str]:
    text = (Path(site.environment["VAR_DIR"]) / "files" / batch_output.path).read_text()
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_programs_get_the_threads_and_the_preferences_that_their_owner_chose(
    site: Site, manage: Manage, background: None, project: str, many_processors: BoincClient, alice: User
) -> None:
    PlanClass.objects.create(name="mt", max_ncpus=64, nthreads_cmdline=True)
    manage("release_app_version", str(APPS / "teller"))
    attach(many_processors, site, alice.email, project)
    valid = Result.objects.filter(app__name="teller", validate_state=ValidateState.VALID)

    def run(name: str, number: int) -> list[str]:
        manage.submit("teller", [{"name": name}], min_quorum=1, target_nresults=1)
        ask_until(lambda: valid.count() == number, f"job {name}", [many_processors], project, site)
        ask_until(KeptOutput.objects.filter(workunit_name__endswith=name).exists, "outputs", [], project, site)
        return told(site, KeptOutput.objects.get(workunit_name__endswith=name))

    # 25 % of 16 processors
    assert run("usual", 1) == ["arguments: --nthreads 4"]
    save(alice, "", bounded(max_threads=2, max_jobs=3))
    assert run("chosen", 2) == [
        "arguments: --nthreads 2",
        "<project_preferences>",
        "<allow_non_preferred_apps>1</allow_non_preferred_apps>",
        "<max_jobs>3</max_jobs>",
        "<max_threads>2</max_threads>",
        "</project_preferences>",
    ]
    # Half of the four processors' peak, at the benchmark of 1 GFLOPS, is what the second job's credit is computed from.
    assert list(valid.order_by("id").values_list("peak_flops", flat=True)) == [4e9, 2e9]
    save(alice, "", bounded(refused_types=["CPU"]))
    manage.submit("teller", [{"name": "refused"}], min_quorum=1, target_nresults=1)

    def is_refused() -> bool:
        return "<no_cpu>1</no_cpu>" in account_file(many_processors)

    ask_until(is_refused, "the client to know", [many_processors], project, site)
    assert Result.objects.filter(workunit__name__endswith="refused", sent_at__isnull=False).count() == 0


def account_file(client: BoincClient) -> str:
    """What the client keeps of the project's account: the preferences among it."""
    return "".join(path.read_text() for path in client.directory.glob("account_127*.xml"))


def test_a_message_reaches_a_running_program_once_and_the_client_takes_a_later_deadline(
    site: Site, manage: Manage, background: None, project: str, boinc_client: BoincClient, alice: User
) -> None:
    manage("release_app_version", str(APPS / "listener"))
    App.objects.filter(name="listener").update(deadline_extension_secs=30 * 86_400)
    # Clients name the deadlines of jobs that have not run past their estimate.
    estimate = {"fpops_est": 2e11, "delay_bound_secs": 86_400}
    manage.submit("listener", [{"name": "long", **estimate}], min_quorum=1, target_nresults=1)
    attach(boinc_client, site, alice.email, project)
    sent = Result.objects.filter(app__name="listener", sent_at__isnull=False)
    ask_until(sent.exists, "the job to be sent", [boinc_client], project, site)
    result = sent.get()
    first_deadline_at = result.deadline_at
    send_down(result.pk, "Go on until 12 < 13.\n", timezone.now())
    ask_until(Trickle.objects.exists, "the program to report", [boinc_client], project, site)

    def is_acknowledged() -> bool:
        return TrickleDown.objects.filter(acknowledged_at__isnull=False).exists()

    ask_until(is_acknowledged, "the message to be acknowledged", [boinc_client], project, site)
    result.refresh_from_db()
    assert first_deadline_at is not None and result.deadline_at is not None
    assert (result.deadline_at - first_deadline_at).days == 29
    valid = sent.filter(validate_state=ValidateState.VALID)
    ask_until(valid.exists, "the job to be validated", [boinc_client], project, site)
    ask_until(KeptOutput.objects.exists, "its output", [], project, site)
    assert told(site, KeptOutput.objects.get()) == ["Go on until 12 < 13.", "1"]

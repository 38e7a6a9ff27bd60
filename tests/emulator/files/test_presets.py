"""The scenarios on offer can be run as they say, and are what the documents describe."""

import pytest

from emulator.engine.policies import registry
from emulator.engine.run import run
from emulator.engine.scenario import DAY_SECS, Attach, NewApp, Scenario
from emulator.files.presets import FOLDER, PRESETS, Preset, preset


@pytest.mark.parametrize("offered", PRESETS, ids=lambda offered: offered.key)
def test_every_preset_runs_under_its_policy(offered: Preset) -> None:
    scenario = offered.scenario
    result = run(scenario, registry.make_policy(offered.policy, scenario, {}), 1.0)
    # All of them always have work for every processor, unless somebody reported that it idled.
    assert result.figures.idle < 0.01 or offered.case
    assert sum(project.used_flop for project in result.projects) > 0


@pytest.mark.parametrize("offered", PRESETS, ids=lambda offered: offered.key)
def test_a_preset_is_whole(offered: Preset) -> None:
    assert isinstance(offered.scenario, Scenario)
    assert offered.scenario.name == offered.key
    assert offered.days * DAY_SECS > max((event.at_secs for event in offered.scenario.events), default=0)
    assert offered.scenario.notes == ()  # nothing in its files is left out


def test_every_folder_is_on_offer_and_every_key_is_its_own() -> None:
    keys = [offered.key for offered in PRESETS]
    assert len(set(keys)) == len(keys)
    assert {folder.name for folder in FOLDER.iterdir()} <= set(keys)
    with pytest.raises(KeyError):
        preset("no such preset")


def test_the_first_example_has_a_gpu_twice_as_fast_as_the_cpu() -> None:
    scenario = preset("document-gpu-and-cpu").scenario
    cpu, gpu = scenario.host.processors
    assert (cpu.counted_flops, gpu.counted_flops) == (1e9, 2e9)
    a, b = scenario.projects
    assert a.share == b.share
    assert [app.versions[0].kind for app in a.apps] == ["NVIDIA"]
    assert [app.versions[0].kind for app in b.apps] == ["NVIDIA", "CPU"]


def test_the_second_example_has_a_job_of_a_year_without_slack() -> None:
    scenario = preset("document-year-long-job").scenario
    (long,) = scenario.projects[0].apps
    assert long.size.mean / long.versions[0].flops == long.latency_bound_secs == 365 * DAY_SECS
    (event,) = preset("document-year-long-job-new-project").scenario.events
    assert event == Attach(365 * DAY_SECS, "C")


def test_in_the_picture_of_the_shortfall_the_first_request_asks_for_13_hours() -> None:
    scenario = preset("document-shortfall").scenario
    result = run(scenario, registry.make_policy("rec", scenario, {}), 1.0)
    assert result.timeline is not None
    rpcs = result.timeline.rpcs
    assert rpcs.at_secs[0] == 0
    assert rpcs.asked_secs[0] == pytest.approx(13 * 3600)


def test_the_third_example_brings_a_gpu_application_after_a_year() -> None:
    (event,) = preset("document-late-gpu-app").scenario.events
    assert isinstance(event, NewApp)
    assert (event.at_secs, event.project, event.app.versions[0].kind) == (365 * DAY_SECS, "B", "NVIDIA")

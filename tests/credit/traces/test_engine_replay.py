"""Traces of BOINC's own validator and feeder, replayed through the engine: every number has to come out."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from credit.engine.averages import Average
from credit.engine.rules import Rules
from tests.support.boinc_traces.comparison import TOLERANCE, Comparison, relative_difference
from tests.support.boinc_traces.replay import Replay
from tests.support.boinc_traces.traces import Trace, TraceError, TraceEvent, TraceResult, read_trace

TRACES = Path(__file__).parents[2] / "data" / "traces"
BASE_DIR = Path(settings.BASE_DIR)


SHORT = 5
"""Phases up to the first of the feeder: enough for anyone who looks for a difference."""


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(TRACES)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first phases of the traces, not gzipped."""
    folder = tmp_path_factory.mktemp("traces")
    for file in TRACES.glob("*.gz"):
        lines = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
        if file.name.startswith("state"):
            lines = lines[:1] + [line for line in lines[1:] if int(line.split(",")[0]) <= SHORT]
        elif "jsonl" in file.name:
            lines = [line for line in lines if json.loads(line)["phase"] <= SHORT]
        (folder / file.stem).write_text("".join(lines))
    return folder


def test_the_deployed_rules_reproduce_every_number_of_the_traces(trace: Trace) -> None:
    comparison = Replay(trace, Rules.deployed()).run()
    assert {quantity: tally.ndiffering for quantity, tally in comparison.tallies.items() if tally.ndiffering} == {}
    # Even the rounding to 16 digits is that of BOINC's statements.
    assert comparison.worst <= 1e-14 < TOLERANCE
    counts = {quantity: tally.count for quantity, tally in comparison.tallies.items()}
    # All of it was compared: workunits that were handled first, claims of valid results, all results, all rows.
    assert counts["credit of a workunit"] == 3930 - 200
    assert counts["claim"] == counts["mode of a claim"] == 6446 + 110 + 200 + 11
    assert counts["grant of a result"] == 7155
    assert counts["version pfc_avg"] == 39 * 13
    assert counts["app min_avg_pfc"] == 39 * 4
    assert counts["host record pfc_avg"] == sum(len(trace.states[p.number].hosts) for p in trace.phases)


@pytest.mark.parametrize(
    "fault",
    [
        {"host_avg_samples": 10},
        {"host_avg_weight": 0.011},
        {"host_avg_limit": 100.0},
        {"version_avg_samples": 101},
        {"version_avg_weight": 0.002},
        {"version_avg_limit": 100.0},
        {"is_sample_n_even": True},
        {"min_host_samples": 11},
        {"min_version_samples": 101},
        {"max_host_scale": 9.0},
        {"trusted_after_valid": 9},
        {"extra_samples_in_mean": 0},
        {"only_gpu_scale": None},
        {"min_sample": 0.0},
        {"max_sample": inf},
        {"unknown_peak_flops": None},
        {"substitute_peak_flops": 4.2e9},
        {"skips_runtime_outliers": False},
        {"peg_width": 0.2},
        {"daily_result_quota": 499},
        {"daily_result_quota": None},
        {"credit_half_life_secs": 6 * 86400.0},
    ],
    ids=str,
)
def test_the_traces_tell_other_rules_from_the_deployed(trace: Trace, fault: dict[str, Any]) -> None:
    start = Trace(trace.phases[:SHORT], trace.events, trace.states)
    assert Replay(start, replace(Rules.deployed(), **fault)).run().worst > TOLERANCE


def test_the_published_rules_differ_from_the_traces(trace: Trace) -> None:
    comparison = Replay(trace, Rules.published()).run()
    assert comparison.tallies["credit of a workunit"].ndiffering > 1000
    assert comparison.computed_credit != pytest.approx(comparison.expected_credit, rel=0.01)


# --- what these traces do not have, but their form can say -------------------------------------------


def result_line(**fields: Any) -> TraceResult:
    given: dict[str, Any] = {
        **{"id": 1, "host_id": 1, "app_version_id": 1, "elapsed_secs": 500.0, "cpu_secs": 400.0, "peak_flops": 2e9},
        **{"sent_at": 1.8e9, "received_at": 1.8e9 + 900, "is_runtime_outlier": False, "state_after": 1},
        **{"claimed": None, "mode": None, "granted": 0.0, **fields},
    }
    return TraceResult(**given)


def event_line(*results: TraceResult, **fields: Any) -> TraceEvent:
    given: dict[str, Any] = {
        **{"phase": 1, "seq": 1, "workunit_id": 1, "app_id": 2, "is_late": False, "fpops_est": 1e12},
        **{"fpops_bound": 1e14, "min_quorum": 1, "target_nresults": 2, "canonical_before": 0, "canonical_after": 1},
        **{"canonical_granted": None, "credit": 0.0, **fields},
    }
    return TraceEvent(results=results, **given)


def replayed(trace: Trace, *events: TraceEvent) -> Replay:
    """These workunits in place of the trace's first phase, with its state."""
    first = replace(trace.phases[0], app_id=2)
    replay = Replay(Trace([first], {1: list(events)}, trace.states), Rules.deployed())
    replay.run()
    return replay


def test_a_late_result_that_is_wrong_counts_as_invalid_and_gets_nothing(trace: Trace) -> None:
    key = next(key for key, row in trace.states[0].hosts.items() if key[1] == 4 and row["max_jobs_per_day"] > 0)
    late = event_line(
        result_line(host_id=key[0], app_version_id=4, state_after=2),
        is_late=True,
        canonical_before=99,
        canonical_granted=7.0,
    )
    replay = replayed(trace, late)
    assert replay.hosts[key].consecutive_valid == 0
    assert replay.granted[1] == 0


def test_a_late_result_gets_what_the_canonical_one_was_granted(trace: Trace) -> None:
    late = event_line(result_line(id=5, app_version_id=4), is_late=True, canonical_before=99, canonical_granted=7.0)
    assert replayed(trace, late).granted[5] == 7.0


def test_a_new_version_inherits_the_newest_record_of_its_kind_and_loses_its_first_update(trace: Trace) -> None:
    replay = Replay(trace, Rules.deployed())
    replay.run()
    row = replay.versions[4]
    assert (row.app_id, row.facts.plan_class) == (2, "")
    replay.versions[400] = replace(row, facts=replace(row.facts, id=400, version_num=row.facts.version_num + 1))
    host_id = next(key[0] for key in replay.hosts if key[1] == 4)
    before = replay.hosts[(host_id, 4)].pfc
    for n in (1, 2):
        replay._set(
            event_line(result_line(id=n, host_id=host_id, app_version_id=400)),
            replay._app_facts(replace(trace.phases[0], app_id=2)),
            {},
        )
        assert (host_id, 4) not in replay.hosts
        assert replay.hosts[(host_id, 400)].pfc.n == before.n + n - 1


def test_a_host_without_any_record_of_a_version_gets_a_new_one(trace: Trace) -> None:
    replay = replayed(trace, event_line(result_line(host_id=12345, app_version_id=4)))
    # 500 s × 2e9 / 1e12
    assert replay.hosts[(12345, 4)].pfc == Average(1, 1.0)
    assert replay.hosts[(12345, 4)].max_jobs_per_day == 1


# --- the command -----------------------------------------------------------------------------------


def output(*arguments: str) -> str:
    out = StringIO()
    call_command("credit_replay", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_counts_and_differences() -> None:
    lines = output(str(TRACES)).splitlines()
    assert lines[0] == "39 phases, 3930 workunits handled, 7155 results"
    [claims] = [line.split() for line in lines if line.startswith("claim ")]
    assert claims[1:3] == ["6767", "0"]
    assert lines[-1].startswith("worst relative difference: ")


def test_the_command_says_what_published_rules_would_do_and_does_not_fail(short: Path) -> None:
    assert "by the published rules" in output(str(short), "--rules", "published")


def altered(short: Path, folder: Path, name: str, change: Callable[[str], str]) -> str:
    """A copy of the first phases in which one file is changed."""
    shutil.copytree(short, folder)
    before = (folder / name).read_text()
    after = change(before)
    assert after != before
    (folder / name).write_text(after)
    return str(folder)


def test_plain_files_are_read_like_gzipped_ones(short: Path) -> None:
    lines = output(str(short)).splitlines()
    assert lines[0] == "5 phases, 640 workunits handled, 1143 results"
    assert all(line.split()[-2] == "0" for line in lines[2:-2])


def test_more_columns_and_a_byte_order_mark_do_no_harm(short: Path, tmp_path: Path) -> None:
    def change(text: str) -> str:
        first, *rest = text.splitlines()
        return "\ufeff" + "\r\n".join([f"{first},note", *(f"{line},as seeded" for line in rest)])

    assert "worst" in output(altered(short, tmp_path / "more", "state_host_app_version.csv", change))


def test_the_command_fails_when_one_grant_differs_in_the_eighth_digit(short: Path, tmp_path: Path) -> None:
    def change(text: str) -> str:
        lines = text.splitlines()
        event = json.loads(lines[400])
        event["results"][0]["granted"] *= 1 + 1e-8
        lines[400] = json.dumps(event)
        return "\n".join(lines)

    with pytest.raises(CommandError, match="1 values differ"):
        output(altered(short, tmp_path / "altered", "inputs.jsonl", change))


@pytest.mark.parametrize(
    "arguments", ['["--max_granted_credit=70"]', '"-max_granted_credit 70"', '["--x", "--max_granted_credit", "70"]']
)
def test_the_maximum_is_found_however_the_validators_arguments_are_written(
    short: Path, tmp_path: Path, arguments: str
) -> None:
    folder = altered(short, tmp_path / "a", "phases.jsonl", lambda text: text.replace("[]", arguments, 1))
    assert [phase.max_granted_credit for phase in read_trace(Path(folder)).phases] == [70, None, None, None, None]


def test_a_row_that_is_missing_is_a_difference(short: Path, tmp_path: Path) -> None:
    def change(text: str) -> str:
        return "".join(text.splitlines(keepends=True)[:-1])

    with pytest.raises(CommandError, match="1 values differ"):
        output(altered(short, tmp_path / "altered", "state_host_app_version.csv", change))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("inputs.jsonl", lambda text: text[:500], r"inputs.jsonl, line 1: "),
        ("inputs.jsonl", lambda text: "[]\n", r"inputs.jsonl, line 1: not a JSON object"),
        ("inputs.jsonl", lambda text: text.replace('"wu": 1,', '"wu": "x",', 1), r"line 1: wu must be a number"),
        ("inputs.jsonl", lambda text: text.replace('"fpops_est": 2', '"fpops_est": NaN, "x": 2', 1), r"fpops_est must"),
        ("inputs.jsonl", lambda text: text.replace('"kind": "set"', '"kind": "sat"', 1), r"kind must be set or late"),
        ("inputs.jsonl", lambda text: text.replace('"phase": 1,', '"phase": 5,', 1), r"phase 5, which is no phase"),
        ("inputs.jsonl", lambda text: text.replace('"results": [{', '"results": [3, {', 1), r"results must be a list"),
        (
            "phases.jsonl",
            lambda text: text.replace('"feeder"', '"feader"', 1),
            r"type must be validate, feeder or",
        ),
        ("phases.jsonl", lambda text: text.replace('"app": 1', '"app": 77', 1), r"phase 1 is of app 77"),
        (
            "phases.jsonl",
            lambda text: text.replace("[]", '["--max_granted_credit", "many"]', 1),
            r"max_granted_credit is 'many'",
        ),
        ("state_app.csv", lambda text: text.replace("min_avg_pfc", "least"), r"line 1: no column min_avg_pfc"),
        ("state_app.csv", lambda text: text.replace("1.0", "nan", 1), r"line 2: a number that is not finite"),
        ("state_app.csv", lambda text: text.replace("1.0", "one", 1), r"line 2: could not convert"),
        ("state_app.csv", lambda text: text.splitlines()[0] + "\n", r"phase 1 is of app 1|no state of phase"),
    ],
)
def test_a_trace_that_cannot_be_read_is_said_where(
    short: Path, tmp_path: Path, name: str, change: Callable[[str], str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        output(altered(short, tmp_path / "broken", name, change))


def test_a_folder_without_a_trace_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"state_app.csv: cannot be read, nor state_app.csv.gz"):
        output(str(tmp_path))


def test_a_file_that_is_not_gzipped_is_said(tmp_path: Path) -> None:
    (tmp_path / "state_app.csv.gz").write_text("no archive")
    with pytest.raises(TraceError, match="gzip"):
        read_trace(tmp_path)


@pytest.mark.system
def test_the_command_starts_no_server(short: Path, tmp_path: Path) -> None:
    """As on a machine where nothing is set: no database is asked for, and none is made."""
    urls = ("DATABASE_URL", "BROKER_URL", "CACHE_URL")
    environment = {name: value for name, value in os.environ.items() if name not in urls} | {"VAR_DIR": str(tmp_path)}
    command = [sys.executable, "manage.py", "credit_replay", str(short)]
    ended = subprocess.run(command, cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]


def test_the_command_says_so_where_the_tests_were_left_out(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tests.support.boinc_traces.replay", None)
    with pytest.raises(CommandError, match="needs the folder tests/ of the source code, which is missing"):
        output(str(short))


# --- comparing -------------------------------------------------------------------------------------


def test_differences_are_relative_to_the_larger_value() -> None:
    assert relative_difference(1.0, 2.0) == 0.5
    assert relative_difference(-1.0, 1.0) == 2.0
    assert relative_difference(0.0, 0.0) == 0.0
    assert relative_difference(None, None) == 0.0
    for one, other in ((None, 1.0), (1.0, None), (nan, 1.0), (inf, 1.0)):
        assert relative_difference(one, other) == inf


def test_a_comparison_counts_what_differs() -> None:
    comparison = Comparison()
    comparison.number("a", 1.0, 1.0 + 1e-12)
    comparison.number("a", 1.0, 1.1)
    comparison.word("b", "x", "y")
    comparison.rows("c", [1, 2], [2, 3])
    assert [(t.count, t.ndiffering) for t in comparison.tallies.values()] == [(2, 1), (1, 1), (1, 1)]
    assert comparison.worst == inf

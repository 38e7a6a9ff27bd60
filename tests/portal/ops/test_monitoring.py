"""Alert rules, dashboards and their page in the docs name the metrics that the site has, and Prometheus reads them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from django.test import Client

from tests.support.needs import need

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "deploy" / "prometheus" / "cobblestone.rules.yml"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
PAGE = ROOT / "docs" / "reference" / "monitoring.md"
NAME = re.compile(r"\bcobblestone_[a-z_]+")
# Labels of example addresses and names of files
NO_METRICS = {"cobblestone_token"}
# What deploy/cobblestone-backup writes for node_exporter, on a machine that the site does not know
OF_BACKUPS = set(re.findall(r"# TYPE (\w+) gauge", (ROOT / "deploy" / "cobblestone-backup").read_text()))


def exposed(client: Client) -> set[str]:
    """The names of all series; those of a histogram too, and those of the units for backups."""
    kinds = re.findall(r"^# TYPE (\S+) (\w+)$", client.get("/metrics").content.decode(), re.M)
    found = {name for name, _ in kinds if not name.endswith("_created")}
    return found | OF_BACKUPS | {f"{name}_bucket" for name, kind in kinds if kind == "histogram"}


def expressions(dashboard: Path) -> list[str]:
    panels = json.loads(dashboard.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def promtool(*arguments: str) -> str:
    need("promtool")
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.django_db
def test_rules_and_dashboards_name_metrics_that_exist(client: Client) -> None:
    names = exposed(client)
    used = {RULES.name: set(NAME.findall(RULES.read_text()))}
    used |= {board.name: set(NAME.findall(" ".join(expressions(board)))) for board in DASHBOARDS}
    assert {file: sorted(found - names) for file, found in used.items() if found - names} == {}


@pytest.mark.django_db
def test_each_metric_is_on_a_dashboard_and_in_the_docs(client: Client) -> None:
    names = {name for name in exposed(client) if name.startswith("cobblestone_")}
    drawn = {name for board in DASHBOARDS for name in NAME.findall(" ".join(expressions(board)))}
    whole = {name.removesuffix("_bucket") for name in names}
    assert whole - {name.removesuffix("_bucket") for name in drawn} == {"cobblestone_task_last_failure_seconds"}
    told = set(NAME.findall(PAGE.read_text())) - NO_METRICS
    assert {name.removesuffix("_bucket") for name in told} == whole


def test_each_alert_is_in_the_docs() -> None:
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    assert set(re.findall(r"^\| `(Cobblestone\w+)` \|", PAGE.read_text(), re.M)) == alerts


@pytest.mark.system
@pytest.mark.nightly
def test_prometheus_reads_the_rules_and_they_fire_when_they_should() -> None:
    promtool("check", "rules", str(RULES))
    promtool("test", "rules", str(RULES.with_name("cobblestone.test.yml")))


@pytest.mark.system
@pytest.mark.nightly
def test_prometheus_reads_every_expression_of_the_dashboards(tmp_path: Path) -> None:
    rules = [
        {"record": f"drawn_{number}", "expr": expression}
        for number, expression in enumerate(text for board in DASHBOARDS for text in expressions(board))
    ]
    file = tmp_path / "drawn.yml"
    # JSON is YAML.
    file.write_text(json.dumps({"groups": [{"name": "drawn", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", str(file))

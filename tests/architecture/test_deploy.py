"""The sample files in deploy/ say what the product does."""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
METRIC = re.compile(r"\btouchstone_\w+")


def told() -> set[str]:
    """The names of metrics in the product's source, as Prometheus shows them."""
    names = set()
    for source in ("webapp/core/telemetry.py", "webapp/metrics.py"):
        names |= set(METRIC.findall((ROOT / source).read_text()))
    return names


def test_the_dashboard_asks_for_metrics_that_there_are_and_for_all_of_them():
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    text = json.dumps(board)
    asked = {re.sub(r"_bucket$", "", name) for name in METRIC.findall(text)}
    assert asked - told() == set(), "drawn, and nobody tells it"
    assert told() - asked - {"touchstone_disk_bytes"} == set(), "told, and not drawn"
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(set(places)) == len(places) and all(p["targets"] for p in board["panels"])


def test_every_metric_is_described():
    described = set(METRIC.findall((ROOT / "docs" / "operating.md").read_text()))
    assert told() <= described


def test_prometheus_asks_the_address_that_there_is():
    [job] = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    urls = (ROOT / "webapp" / "urls.py").read_text()
    assert f'path("{job["metrics_path"].strip("/")}"' in urls and job["authorization"]["type"] == "Bearer"

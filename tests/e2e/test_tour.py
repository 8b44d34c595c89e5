"""The tour of the pages for many runs: its page shows the pictures that `make tour` takes, and each page that it photographs exists."""

import re

import pytest

from scripts import tour
from tests.e2e.seed import seed_run
from tests.e2e.test_flame import tell
from tests.e2e.test_sweeps import come_to
from tests.stack import ROOT
from tests.webapp.experiments.conftest import make_version
from webapp.experiments.launch import checks
from webapp.experiments.models import Run, SweepRun
from webapp.experiments.sweeps import rounds
from webapp.experiments.sweeps import services as sweeping
from webapp.experiments.sweeps.checking import Wish
from webapp.inference.models import RegisteredModel
from webapp.reports import services as reports

pytestmark = pytest.mark.browser


@pytest.fixture
def tour_pages(server, team, process) -> tour.TourPages:
    """A sweep as that of the tour, whose runs are told instead of trained. One is still under way."""
    version = make_version(team.owner)
    RegisteredModel.objects.create(workspace=team.workspace, name=tour.MODEL, source="local", path="/models/smollm2")
    asked = tour.SWEEP
    wish = Wish(
        "policy", asked["config"], checks.DatasetChoice(id=version.dataset_id), asked["axes"], seeds=2, at_once=4
    )
    sweep = sweeping.launch(team.researcher, wish)
    rounds.advance(sweep.pk)
    runs = [row.run for row in SweepRun.objects.filter(trial__sweep=sweep).order_by("pk")]
    come_to(sweep, lambda values, seed: 0.5 + seed / 10)
    for run in runs:
        seed_run(run, seed=run.pk, state="finished" if run != runs[-1] else "running")
    Run.objects.filter(pk=runs[0].pk).update(state="running")
    trainer = process(runs[0])
    tell(trainer, 61, 62)
    report = reports.create(team.researcher, "Which learning rate?", tour.REPORT.format(sweep=sweep.pk))
    return tour.TourPages(sweep.pk, [run.pk for run in runs], runs[0].pk, report.pk, version.pk)


def test_each_page_of_the_tour_is_photographed(open_page, as_researcher, tour_pages, monkeypatch, tmp_path):
    monkeypatch.setattr(tour, "PICTURES", tmp_path)
    page = open_page(as_researcher)
    tour.take(page, "line", "/experiments/line", "main tbody tr")
    tour.photograph(page, tour_pages)
    taken = {path.name for path in tmp_path.iterdir()}
    text = (ROOT / "docs" / "tour.md").read_text()
    assert set(re.findall(r"images/tour/([\w-]+\.png)\)", text)) == taken
    assert {path.name for path in tour_pictures()} == taken


def tour_pictures():
    return (ROOT / "docs" / "images" / "tour").iterdir()

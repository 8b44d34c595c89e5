"""Results as data: the columns, the missing values, and cells that a spreadsheet would run."""

import csv
import io
from dataclasses import asdict
from typing import Any

import pytest

from webapp.evaluation import report as r
from webapp.evaluation.models import Evaluation
from webapp.evaluation.results import numbers as results

pytestmark = pytest.mark.django_db
NONE = {"value": None, "low": None, "high": None, "n": 0, "missing": 3, "undefined": "no answers", "interval": ""}
HALF = {"value": 0.5, "low": 0.3, "high": 0.7, "n": 10, "missing": 1, "undefined": "", "interval": "bootstrap"}


@pytest.fixture
def row(team):
    blocks: list[Any] = [
        r.table(
            "Against Best",
            ["Judge", "Difference", "Only Best right"],
            [[r.text("=1+1"), r.estimate(HALF, unit="gap"), r.count(3)]],
        ),
        r.table("Accuracy by group", ["Group", "Best", "-2"], [[r.text("maths"), r.estimate(HALF), r.estimate(NONE)]]),
        r.table("Of older days", ["Judge", "Luck"], [[r.text("Best"), r.estimate(HALF)]]),
        r.Curve("Voting", "k", "accuracy", [{"name": "Best", "points": [r.point(3, HALF, "judge:Best")]}]),
    ]
    report = r.Report(r.headline("Accuracy of Best", r.estimate(HALF)), [("Pairs", r.count(11))], blocks)
    return Evaluation.objects.create(
        workspace=team.workspace, name="A", recipe="judge_audit", state="finished", results=report.json({})
    )


def test_each_number_says_what_it_is_about(row, api):
    found = api.get(f"/evaluations/{row.pk}/results").json()
    [difference, alone] = found["against_best"]
    assert (difference["subject"], difference["beside"], difference["measure"]) == ("=1+1", "Best", "difference")
    assert (alone["measure"], alone["value"], alone["unit"], alone["low"]) == ("only_best_right", 3, "count", None)
    best, other = found["by_group"]
    assert (best["subject"], best["group"], best["measure"], best["n"]) == ("Best", "maths", "accuracy", 10)
    assert (other["value"], other["low"], other["why"], other["missing"]) == (None, None, "no answers", 3)
    [point] = found["voting"]
    assert (point["subject"], point["x"], point["high"], point["cases"]) == ("Best", 3, 0.7, ["judge:Best"])
    [old] = found["other"]
    assert (old["beside"], old["subject"], old["measure"]) == ("Of older days", "Best", "luck")
    assert (found["headline"]["value"], found["headline"]["text"]) == (0.5, "Accuracy of Best")
    assert found["coverage"][0]["measure"] == "pairs" and found["judges"] == []


def test_a_table_with_the_title_of_an_older_version_is_read_like_a_new_one(row):
    for title in ("Outcome of the questions", "What became of the questions"):
        table = r.table(title, ["Judge", "State", "Questions"], [[r.text("Best"), r.text("answered"), r.count(3)]])
        row.results["blocks"] = [asdict(table)]
        found = results.numbers_of(row)
        assert ([(each["group"], each["value"]) for each in found["questions"]], found["other"]) == (
            [("answered", 3)],
            [],
        )


def test_a_spreadsheet_runs_nothing_and_missing_is_empty(row):
    lines = {
        (line["section"], line["measure"], line["subject"]): line
        for line in csv.DictReader(io.StringIO(results.as_csv(row)))
    }
    assert ("against_best", "difference", "'=1+1") in lines and ("by_group", "accuracy", "'-2") in lines
    assert (lines["by_group", "accuracy", "'-2"]["value"], lines["by_group", "accuracy", "Best"]["low"]) == ("", "0.3")


def test_before_there_are_results_it_says_so(row, api, as_researcher, as_outsider):
    Evaluation.objects.filter(pk=row.pk).update(results=None, state="running")
    for place in ("results", "results/csv"):
        answer = api.get(f"/evaluations/{row.pk}/{place}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "no_results")
    assert as_researcher.get(f"/evaluations/{row.pk}/export/csv").status_code == 404
    assert as_outsider.get(f"/api/v1/evaluations/{row.pk}/results").status_code == 404

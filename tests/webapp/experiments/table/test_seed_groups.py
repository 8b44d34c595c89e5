"""Runs that differ only in their seed are one row, with mean and interval as by hand. Each run is counted exactly once."""

import pytest

from webapp.experiments.models import Run
from webapp.experiments.table import family_order, queries, seed_groups
from webapp.experiments.table.queries import Layout

pytestmark = pytest.mark.django_db
COLUMNS = ("state", "eval/score", "config.optim.lr", "config.seed", "model")


@pytest.fixture
def six(make):
    """Three seeds of one config, two of another (one has no score), and a single run."""
    runs = [make(f"a{seed}", seed=seed, lr=1e-5, scores=[score]) for seed, score in enumerate((0.1, 0.2, 0.6))]
    runs += [make(f"b{seed}", seed=seed, lr=1e-4, scores=[0.4] if seed else []) for seed in (0, 1)]
    return [*runs, make("c", lr=1e-3, state="failed")]


def walked(membership, sort: str, limit: int) -> list[tuple[str, int]]:
    rows, cursor = [], None
    while True:
        page = seed_groups.page(membership, Layout(sort=sort, columns=COLUMNS), cursor, limit)
        rows += [(row.run.name, len(row.ids)) for row in page.rows]
        cursor = page.next
        if cursor is None:
            return rows


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-created", [("c", 1), ("b1", 2), ("a2", 3)]),
        ("created", [("a2", 3), ("b1", 2), ("c", 1)]),
        ("-eval/score", [("b1", 2), ("a2", 3), ("c", 1)]),
        ("eval/score", [("a2", 3), ("b1", 2), ("c", 1)]),
        ("-config.optim.lr", [("c", 1), ("b1", 2), ("a2", 3)]),
        ("-name", [("c", 1), ("b1", 2), ("a2", 3)]),
    ],
)
def test_each_family_is_one_row_in_the_order_of_its_mean(six, team, sort, expected):
    for limit in (1, 2, 50):
        assert [(name[0], n) for name, n in walked(team.researcher, sort, limit)] == [(n[0], k) for n, k in expected]


@pytest.mark.parametrize("near", [1, 2, 3])
def test_the_newest_rows_are_found_among_few_runs_if_these_have_a_page_of_them(six, team, make, monkeypatch, near):
    """The rows of a page may have more runs than are looked at first, and a row's newest run may be on an earlier page than its others."""
    make("a9", seed=9, lr=1e-5)
    make("d", seed=0, lr=1e-2)
    monkeypatch.setattr(family_order, "NEAR", (near,))
    for limit in (1, 2, 3, 50):
        newest = [("d", 1), ("a9", 4), ("c", 1), ("b1", 2)]
        assert walked(team.researcher, "-created", limit) == newest
        assert walked(team.researcher, "created", limit) == newest[::-1]


def test_mean_and_interval_are_those_of_students_t(six, team):
    row = seed_groups.page(team.researcher, Layout(query="eval/score>0", columns=COLUMNS, sort="created")).rows[0]
    cells = {cell.column.name: cell for cell in row.cells}
    found = cells["eval/score"].estimate
    assert (found.value, found.n) == (pytest.approx(0.3), 3)
    # s = 0.2645751, s / sqrt(3) = 0.1527525, t(2) at 97.5% = 4.3026527
    assert (found.low, found.high) == (pytest.approx(0.3 - 0.6572413), pytest.approx(0.3 + 0.6572413))
    assert cells["config.optim.lr"].value == 1e-5
    assert (cells["config.seed"].estimate, cells["config.seed"].differ) == (None, 3)  # seeds have no mean
    assert row.seeds == ("0", "1", "2")
    assert row.states == (("finished", 3),)


def test_runs_of_one_seed_count_as_one(six, team, make):
    """A run that is launched again every night has the same seed and the same value, and says nothing about other seeds."""
    for again in range(3):
        make(f"a0 again {again}", seed=0, lr=1e-5, scores=[0.1 + 0.1 * again])
    for _ in range(3):
        make("d", seed=0, lr=1e-6, scores=[0.5])
    rows = seed_groups.page(team.researcher, Layout(columns=COLUMNS, sort="created")).rows
    estimates = {row.run.name[0]: row.cells[1].estimate for row in rows}
    # seed 0 has 0.1, 0.1, 0.2, 0.3: mean 0.175; with 0.2 and 0.6 the mean is 0.325
    assert (estimates["a"].value, estimates["a"].n, estimates["a"].missing) == (pytest.approx(0.325), 3, 0)
    assert (estimates["d"].value, estimates["d"].n, estimates["d"].low) == (0.5, 1, None), "one seed has no spread"
    assert {len(row.ids) for row in rows} == {6, 2, 1, 3}, "every run is counted in its row"


def test_the_order_is_that_of_the_means_that_are_shown(six, team, make):
    """A seed that was launched again counts once in the mean, so once in the order: by all runs, b would have the mean 0.325."""
    make("b1 again", seed=1, lr=1e-4, scores=[0.6])
    for _ in range(3):
        make("b2", seed=2, lr=1e-4, scores=[0.2])
    make("e", lr=1e-2, scores=[0.33], seed=4)
    for sort in ("eval/score", "-eval/score"):
        for limit in (1, 2, 50):
            shown, cursor = [], None
            while True:
                found = seed_groups.page(team.researcher, Layout(sort=sort, columns=COLUMNS), cursor, limit)
                shown += [row.cells[1].estimate.value for row in found.rows if row.cells[1].estimate]
                if (cursor := found.next) is None:
                    break
            # a: 0.1, 0.2, 0.6; b: seed 1 has 0.4 and 0.6, seed 2 has 0.2; e: 0.33
            assert shown == pytest.approx(sorted([0.3, 0.35, 0.33], reverse=sort[0] == "-"))


def test_a_seed_without_a_value_is_counted_as_missing(six, team):
    rows = seed_groups.page(team.researcher, Layout(columns=COLUMNS)).rows
    estimate = {row.run.name[0]: row.cells[1].estimate for row in rows}
    assert (estimate["b"].n, estimate["b"].missing, estimate["b"].low) == (1, 1, None)
    assert estimate["c"] is None


def test_runs_of_other_experiments_or_without_a_family_stand_alone(six, team, make):
    make("elsewhere", seed=7, lr=1e-5, experiment="Other work")
    Run.objects.filter(name="a0").update(family="")
    sizes = {row.run.name: len(row.ids) for row in seed_groups.page(team.researcher, Layout()).rows}
    assert sizes == {"elsewhere": 1, "c": 1, "b1": 2, "a2": 2, "a0": 1}


def test_a_row_of_several_seeds_is_not_named_after_one_of_them(six, team):
    for run in six[2:]:
        Run.objects.filter(pk=run.pk).update(name=f"rates, trial {run.name[0]}, seed {run.config['seed']}")
    rows = seed_groups.page(team.researcher, Layout()).rows
    assert [row.name for row in rows] == ["rates, trial c, seed 0", "rates, trial b", "rates, trial a"]


def test_a_query_folds_what_it_finds_alone(six, team):
    rows = seed_groups.page(team.researcher, Layout(query="eval/score>0.15")).rows
    assert {row.run.name[0]: len(row.ids) for row in rows} == {"a": 2, "b": 1}


def test_the_page_folds_and_unfolds(six, as_researcher, team):
    shown = as_researcher.get("/experiments", {"fold": "seeds", "columns": "state,eval/score,result,took,model"})
    assert [len(row.ids) for row in shown.context["rows"]] == [1, 2, 3]
    text = shown.content.decode()
    assert "seeds 0, 1, 2" in text and "0.300" in text
    ids = ",".join(str(run.pk) for run in six[:3])
    assert f"run%3A{ids.replace(',', '%2C')}" in text
    found = queries.find_runs(team.researcher, f"is:any run:{ids}")
    assert found.count() == 3

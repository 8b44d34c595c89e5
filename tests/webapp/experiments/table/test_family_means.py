"""Stored means, and the first runs of an order, give folded rows exactly the order of all runs in groups, whatever has happened to the runs, and
whenever a worker last looked."""

import random
import sys
from datetime import timedelta
from itertools import count
from threading import Thread

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.webapp.experiments.table.conftest import run_maker
from webapp.experiments import table_facts
from webapp.experiments.models import Experiment, FamilyChange, FamilyMean, Run, RunValue
from webapp.experiments.table import columns, computed_means, family_means, family_order, seed_groups
from webapp.experiments.table.columns import Column
from webapp.experiments.table.queries import Layout
from webapp.tracking.models import LoggedRun
from workers.runs import keep_means

pytestmark = pytest.mark.django_db
SORTS = ("-eval/score", "eval/score", "max(eval/score)", "-min(eval/score)", "-took", "-config.optim.lr", "config.optim.lr",
         "config.seed", "-created", "created", "config.optim.optimizer")  # fmt: skip
QUERIES = ("", "", "is:any", "seed:0,1", "eval/score>-0.5", "-config.optim.lr<1e-4", "has:took", "eval/score>5")
NAN = float("nan")


def walked(membership, sort: str, limit: int, **more) -> list[tuple[int, ...]]:
    """The runs of each row, of all pages."""
    rows, cursor = [], None
    while True:
        page = seed_groups.page(membership, Layout(sort=sort, **more), cursor, limit)
        rows += [row.ids for row in page.rows]
        if (cursor := page.next) is None:
            return rows


def computed(monkeypatch, *args, **more) -> list[tuple[int, ...]]:
    """All runs are grouped for each page."""
    with monkeypatch.context() as patch:
        patch.setattr(family_means, "stored_means", lambda *_: None)
        patch.setattr(family_order.Heads, "first", lambda *_: None)
        return walked(*args, **more)


def score_of(team) -> Column:
    column = columns.resolve(team.workspace.pk, ["eval/score"])["eval/score"]
    assert isinstance(column, Column)
    return column


def not_kept(monkeypatch) -> None:
    """From now on nothing computes a mean for a page."""
    monkeypatch.setattr(seed_groups, "means", lambda *_: pytest.fail("a mean was computed"))


class Happenings:
    """Changes of runs, drawn at random. Some scores are thirds and sevenths, whose sums depend on the order of their terms."""

    def __init__(self, make, draw: random.Random) -> None:
        self._make, self._draw, self._numbers = make, draw, count()
        self._experiments = [None, "Other work"]
        self.kinds = [self.comes, self.comes, self.scores, self.scores, self.archived, self.returns, self.goes, self.hidden,
                      self.shown, self.moves, self.elsewhere, self.ends, self.seeded, self.loses]  # fmt: skip

    def happens(self) -> None:
        self._draw.choice(self.kinds)()

    def _run(self) -> Run | None:
        return self._draw.choice(list(Run.objects.order_by("pk")) or [None])

    def _score(self) -> float:
        return NAN if self._draw.random() < 0.2 else self._draw.randrange(-8, 9) / self._draw.choice([3, 7, 8])

    def _set(self, **values) -> None:
        if run := self._run():
            Run.objects.filter(pk=run.pk).update(**values)

    def comes(self) -> None:
        scores = [self._score() for _ in range(self._draw.randrange(3))]
        lr, seed = self._draw.choice([1e-5, 1e-4, 1e-3]), self._draw.randrange(2)
        name, place = f"r{next(self._numbers)}", self._draw.choice(self._experiments)
        self._make(name, seed=seed, lr=lr, scores=scores, experiment=place)

    def scores(self) -> None:
        if run := self._run():
            score = self._score()
            if score == score:
                fact = table_facts.Fact("metric", "eval/score", number=score, low=-2.0, high=2.0)
                table_facts.keep(run.experiment.workspace_id, run.pk, [fact])

    def archived(self) -> None:
        self._set(archived_at=timezone.now())

    def returns(self) -> None:
        self._set(archived_at=None)

    def goes(self) -> None:
        if run := self._run():
            run.delete()

    def hidden(self) -> None:
        if run := self._run():
            LoggedRun.objects.update_or_create(
                run=run, defaults={"key": f"{run.pk:032}", "door": "mlflow", "deleted_at": timezone.now()}
            )

    def shown(self) -> None:
        if row := LoggedRun.objects.exclude(deleted_at=None).order_by("?").first():
            LoggedRun.objects.filter(pk=row.pk).update(deleted_at=None)

    def moves(self) -> None:
        self._set(family=self._draw.choice(["", "a" * 32, "b" * 32]))

    def elsewhere(self) -> None:
        if (run := self._run()) and (place := Experiment.objects.order_by("?").exclude(pk=run.experiment_id).first()):
            Run.objects.filter(pk=run.pk).update(experiment=place, number=1000 + next(self._numbers))

    def ends(self) -> None:
        if run := self._run():
            run.started_at = timezone.now()
            run.ended_at = run.started_at + timedelta(seconds=self._draw.randrange(1, 9))
            table_facts.keep_took(run.experiment.workspace_id, run)

    def seeded(self) -> None:
        if run := self._run():
            run.config = {**run.config, "seed": self._draw.randrange(3)}
            table_facts.replace_config(run.experiment.workspace_id, run)
            run.save()

    def loses(self) -> None:
        if run := self._run():
            RunValue.objects.filter(run=run, column__source="metric").delete()


@pytest.mark.parametrize("drawn", range(3))
def test_the_order_is_that_of_means_that_are_computed_now(launch, team, monkeypatch, drawn):
    draw = random.Random(drawn)  # noqa: S311
    happenings = Happenings(run_maker(launch), draw)
    happenings.comes()
    table_facts.keep(team.researcher.workspace_id, Run.objects.get().pk, [
        table_facts.Fact("metric", "eval/score", 0.5, low=0.0, high=1.0), table_facts.Fact("run", "took", 3.0)
    ])  # fmt: skip
    for _ in range(40):
        happenings.happens()
        if draw.random() < 0.3:
            monkeypatch.setattr(family_means, "AT_ONCE", draw.randrange(1, 4))
            family_means.keep_oldest()
        monkeypatch.setattr(family_order, "NEAR", draw.choice([(1,), (1, 3), (4, 20)]))
        monkeypatch.setattr(computed_means, "FEW", draw.choice([0, 5000]))
        monkeypatch.setattr(computed_means, "DENSE", draw.choice([0, 20]))
        for sort in draw.sample(SORTS, 2):
            limit, query = draw.choice([1, 2, 50]), draw.choice(QUERIES)
            expected = computed(monkeypatch, team.researcher, sort, limit, query=query)
            assert walked(team.researcher, sort, limit, query=query) == expected, (sort, query)
    keep_means()
    assert not FamilyChange.objects.exists()
    for sort in SORTS:
        assert walked(team.researcher, sort, 2) == computed(monkeypatch, team.researcher, sort, 2)


@pytest.fixture
def scored(make):
    return [make(f"a{seed}", seed=seed, lr=1e-5, scores=[score]) for seed, score in enumerate((0.25, 0.5))] + [
        make("b", lr=1e-4, scores=[0.75])
    ]


def test_nothing_is_computed_for_a_page_once_a_worker_has_looked(scored, team, monkeypatch):
    first, second, other = (run.pk for run in scored)
    keep_means()
    not_kept(monkeypatch)
    assert walked(team.researcher, "-eval/score", 1) == [(other,), (first, second)]
    assert FamilyMean.objects.get(column__path="eval/score", newest=second).number == 0.375


def test_a_filter_computes_the_mean_of_what_it_leaves(scored, team):
    first, second, other = (run.pk for run in scored)
    keep_means()
    assert walked(team.researcher, "eval/score", 50, query="eval/score>0.3") == [(second,), (other,)]
    Run.objects.filter(pk=second).update(archived_at=timezone.now())
    assert walked(team.researcher, "-eval/score", 50, query="is:any") == [(other,), (first, second)]
    assert walked(team.researcher, "-eval/score", 50) == [(other,), (first,)]


def test_all_means_are_computed_while_too_many_rows_have_changed(scored, team, monkeypatch):
    """As after an upgrade: the means of no row are stored, and each has a change."""
    keep_means()
    FamilyMean.objects.all().delete()
    for run in Run.objects.all():
        FamilyChange.objects.create(experiment_id=run.experiment_id, kin=run.family)
    expected = computed(monkeypatch, team.researcher, "-eval/score", 1)
    for most in (0, 1, 2):
        monkeypatch.setattr(family_means, "MOST_CHANGED", most)
        assert walked(team.researcher, "-eval/score", 1) == expected


def test_all_means_are_computed_while_too_many_changes_wait(scored, team, monkeypatch):
    """Of whatever workspace: no worker has looked for a long time."""
    assert family_means.stored_means(team.workspace.pk, score_of(team)) is not None
    monkeypatch.setattr(family_means, "MOST_READ", FamilyChange.objects.count() - 1)
    assert family_means.stored_means(team.workspace.pk, score_of(team)) is None
    assert len(walked(team.researcher, "eval/score", 1)) == 2


def test_values_whose_squares_are_too_large_stop_nobody(scored, make, team, as_researcher, monkeypatch):
    first, second, other = (run.pk for run in scored)
    huge = [make(f"huge {seed}", seed=seed, lr=1e-3, scores=[value]).pk for seed, value in enumerate((1e200, 0.5))]
    low = [make(f"low {seed}", seed=seed, lr=1e-2, scores=[-sys.float_info.max]).pk for seed in (0, 1)]
    order = [tuple(huge), (other,), (first, second), tuple(low)]
    assert walked(team.researcher, "-eval/score", 1) == order
    keep_means()
    shown = as_researcher.get("/experiments", {"fold": "1", "sort": "-eval/score", "columns": "eval/score"})
    assert shown.status_code == 200
    not_kept(monkeypatch)
    assert walked(team.researcher, "-eval/score", 1) == order


def test_rows_of_a_deleted_experiment_are_gone_at_once(scored, make, team):
    make("elsewhere", experiment="Other work", scores=[1.0])
    keep_means()
    Experiment.objects.get(name="Other work").delete()
    first, second, other = (run.pk for run in scored)
    for _ in range(2):
        assert walked(team.researcher, "-eval/score", 1) == [(other,), (first, second)]
        keep_means()


def test_changes_and_means_of_another_workspace_are_not_read(scored, team, monkeypatch):
    keep_means()
    not_kept(monkeypatch)
    place = Experiment.objects.create(workspace_id=team.outsider.workspace_id, name="theirs")
    FamilyChange.objects.create(experiment=place, kin="c" * 32)
    assert len(walked(team.researcher, "eval/score", 50)) == 2


@pytest.mark.django_db(transaction=True)
def test_a_change_that_a_worker_cannot_see_yet_is_kept(scored, team, monkeypatch):
    """Another transaction writes a value while a worker computes: its change stays, and the next look stores its value."""

    def write() -> None:
        try:
            with transaction.atomic():
                run = scored[2]
                fact = table_facts.Fact("metric", "eval/score", 0.125, low=0.0, high=1.0)
                table_facts.keep(run.experiment.workspace_id, run.pk, [fact])
                looked = Thread(target=look)
                looked.start()
                looked.join()
        finally:
            connection.close()

    def look() -> None:
        try:
            keep_means()
        finally:
            connection.close()

    writer = Thread(target=write)
    writer.start()
    writer.join()
    assert FamilyMean.objects.get(column__path="eval/score", newest=scored[2].pk).number == 0.75
    first, second, other = (run.pk for run in scored)
    assert walked(team.researcher, "eval/score", 50) == [(other,), (first, second)]
    keep_means()
    not_kept(monkeypatch)
    assert walked(team.researcher, "eval/score", 50) == [(other,), (first, second)]

"""The runs of the home page: those of one workspace, found without a look at the runs of others."""

import json
from copy import copy

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.experiments.models import Experiment, Run
from webapp.experiments.runs import listing

pytestmark = pytest.mark.django_db
MANY = 2000


@pytest.fixture
def crowded(launch, team) -> Run:
    """The team's workspace has many runs, and the outsider's has an experiment without any."""
    first = launch()
    Run.objects.filter(pk=first.pk).update(state="finished")
    first.refresh_from_db()
    Run.objects.bulk_create(_copied(first, number) for number in range(2, MANY))
    Experiment.objects.create(workspace=team.outsider.workspace, name="nothing yet")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE experiments_run")
        cursor.execute("ANALYZE experiments_experiment")
    return first


def _copied(run: Run, number: int, **fields) -> Run:
    """A row like that of the run; without `pk`, the database gives it a new one."""
    made = copy(run)
    made.pk, made.number = None, number
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def rows_touched(workspace_id: int) -> int:
    """The rows that the nodes of the plans return or reject, in all queries of the overview."""
    with CaptureQueriesContext(connection) as asked:
        listing.overview(workspace_id, 6)
    touched = 0
    with connection.cursor() as cursor:
        for query in asked.captured_queries:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query['sql']}")
            [[answer]] = cursor.fetchall()
            [plan] = json.loads(answer) if isinstance(answer, str) else answer
            touched += _touched(plan["Plan"])
    return touched


def _touched(node: dict) -> int:
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
    return round(own * node["Actual Loops"]) + sum(_touched(each) for each in node.get("Plans", ()))


def test_an_empty_workspace_walks_no_runs_of_others(crowded, team):
    assert listing.overview(team.outsider.workspace_id, 6) == ([], [])
    assert rows_touched(team.outsider.workspace_id) < 50


def test_a_workspace_with_few_old_runs_reads_these(crowded, team):
    other = Experiment.objects.get(workspace=team.outsider.workspace)
    old = [_copied(crowded, number, experiment=other, pk=-number) for number in (1, 2, 3)]
    Run.objects.bulk_create(old)
    _, recent = listing.overview(team.outsider.workspace_id, 6)
    assert [row.run.pk for row in recent] == sorted((run.pk for run in old), reverse=True)
    assert rows_touched(team.outsider.workspace_id) < 100


def test_the_newest_of_several_experiments_come_in_their_order(launch, team):
    made = [launch(experiment=name) for name in ("a", "b", "a", "c", "b", "a")]
    for run in made:
        Run.objects.filter(pk=run.pk).update(state="failed")
    Run.objects.filter(pk=made[3].pk).update(state="draft")
    active, recent = listing.overview(team.workspace.pk, 4)
    assert active == [] and [row.run.pk for row in recent] == [made[place].pk for place in (5, 4, 2, 1)]

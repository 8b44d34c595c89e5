"""The runs that a query finds, and the message for a wrong query. No query reaches another workspace."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webapp.experiments.table.module_runs import *  # noqa: F403 - fixtures
from webapp.experiments.models import Run
from webapp.experiments.table import queries, services
from webapp.experiments.table.language import QueryProblem

pytestmark = pytest.mark.django_db


@pytest.fixture
def names(team):
    """`names(query)`: the names of the runs that the query finds for the researcher, in order."""
    return lambda query: sorted(queries.find_runs(team.researcher, query).values_list("name", flat=True))


def begin(make, team):
    runs = [
        make("alpha", lr=1e-5, scores=[0.2, 0.6, 0.5]),
        make("beta", state="failed", lr=1e-4, scores=[0.3]),
        make("gamma", state="running", experiment="Other work"),
    ]
    services.set_tags(team.researcher, runs[0], ["Ablation", "good"])
    services.set_tags(team.researcher, runs[1], ["ablation"])
    services.star(team.researcher, runs[2], True)
    services.star(team.owner, runs[0], True)
    services.group(team.researcher, [runs[1].pk], "night shift")
    return runs


@pytest.fixture
def three(runs_copy):
    return runs_copy["runs"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "alpha beta gamma"),
        ("state:finished", "alpha"),
        ("state:finished,failed", "alpha beta"),
        ("state!=finished", "beta gamma"),
        ("-state:finished,failed", "gamma"),
        ("state:active", "gamma"),
        ("is:over", "alpha beta"),
        ("is:starred", "gamma"),
        ("tag:ABLATION", "alpha beta"),
        ("tag:ablation -tag:good", "beta"),
        ('group:"night shift"', "beta"),
        ("group~shift", "beta"),
        ('experiment:"other work"', "gamma"),
        ("recipe:policy", "alpha beta gamma"),
        ("recipe:sft", ""),
        ("model~smol", "alpha beta gamma"),
        ("dataset:demo", "alpha beta gamma"),
        ("by:rosa", "alpha beta gamma"),
        ("by:me is:mine", "alpha beta gamma"),
        ("by:ada", ""),
        ("config.optim.lr<=1e-5", "alpha"),
        ("config.optim.lr:1e-05", "alpha"),
        ("config.optim.lr:1e-5,1e-4", "alpha beta"),
        ("config.optim.lr!=1e-5", "beta gamma"),
        ("config.model.name~smol", "alpha beta gamma"),
        ("seed:0", "alpha beta gamma"),
        ("eval/score>0.4", "alpha"),
        ("eval/score<0.4", "beta"),
        ("eval/score!=0.5", "beta"),
        ("-eval/score:0.5", "beta gamma"),
        ("max(eval/score)>0.55", "alpha"),
        ("min(eval/score)<0.25", "alpha"),
        ("best(eval/score)>=0.6", "alpha"),
        ("last(eval/score)=0.5", "alpha"),
        ("ALP", "alpha"),
        ("other", "gamma"),
        ("age<1h", "alpha beta gamma"),
        ("age>1h", ""),
        ("step<1", "alpha beta gamma"),
        ("step>0", ""),
        ("run:0", ""),
        ("is:archived", ""),
        ("is:any", "alpha beta gamma"),
    ],
)
def test_what_a_query_finds(three, names, query, expected):
    assert names(query) == expected.split()


def test_days_and_moments(three, names):
    noon = timezone.now().replace(year=2026, month=11, day=20, hour=12, minute=0, second=0, microsecond=0)
    for place, run in enumerate(three):
        Run.objects.filter(pk=run.pk).update(created_at=noon + timedelta(days=place))
    assert names("created:2026-11-20") == ["alpha"]
    assert names("created>2026-11-20") == ["beta", "gamma"]
    assert names("created>=2026-11-21 created<2026-11-22") == ["beta"]
    assert names("created!=2026-11-21") == ["alpha", "gamma"]
    assert names("created<=2026-11-20T12:00:00Z") == ["alpha"]


def test_archived_runs_are_found_by_those_who_ask_for_them(three, names, team):
    services.archive(team.researcher, [three[0].pk])
    assert names("") == ["beta", "gamma"]
    assert names("is:archived") == ["alpha"]
    assert names("-is:archived") == ["beta", "gamma"]
    assert names("is:any") == ["alpha", "beta", "gamma"]


@pytest.mark.parametrize(
    ("query", "at", "words"),
    [
        ("state:done", "done", "There is no state done"),
        ("state<finished", "<", "state takes"),
        ("config.optim.rl<1", "config.optim.rl", "No run here has config.optim.rl. Did you mean config.optim.lr?"),
        ("eval/scor>1", "eval/scor", "Did you mean eval/score?"),
        ("optim.lr>1", "optim.lr", "Did you mean config.optim.lr?"),
        ("step:1.5", "1.5", "1.5 is not a whole number"),
        ("eval/score>high", "high", "high is not a number"),
        ("eval/score>nan", "nan", "nan is not a number"),
        ("eval/score~3", "eval/score~3", "Compare numbers"),
        ("eval/score>1,2", "2", "Compare with one number"),
        ("created>yesterday", "yesterday", "Write a day as"),
        ("created:2026-13-45", "2026-13-45", "Write a day as"),
        ("age<soon", "soon", "Write a length of time"),
        ("is:good", "good", "A run can be"),
        ("best(eval/other)>1", "best(eval/other)", "Write max(eval/other) or min(eval/other)"),
    ],
)
def test_what_makes_no_sense_is_named_at_its_place(three, names, query, at, words):
    with pytest.raises(QueryProblem) as told:
        names(query)
    assert query[told.value.start : told.value.end] == at
    assert words in told.value.message


def test_a_query_sees_its_own_workspace_only(three, team):
    assert not queries.find_runs(team.outsider, "").exists()
    with pytest.raises(QueryProblem):  # and the message does not show which columns other workspaces have
        queries.find_runs(team.outsider, "eval/score>0").exists()

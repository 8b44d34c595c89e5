"""The prompts on which two runs differ most: means worked out by hand, and what is left out is counted."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.experiments.models import Experiment, Rollout
from webapp.experiments.table import prompts_apart

pytestmark = pytest.mark.django_db


def sampled(run, step, phase="eval", **rewards):
    """`key=[reward of each response]`; None: the response has no reward."""
    Rollout.objects.bulk_create(
        Rollout(
            run=run, step=step, phase=phase, group=group, index=index, example_key=key, reward=reward,
            content={"prompt": f"What is {key}? " + "x" * 400},
        )
        for group, (key, given) in enumerate(rewards.items())
        for index, reward in enumerate(given)
    )  # fmt: skip


@pytest.fixture
def pair(make):
    return make("first"), make("second", seed=1)


def test_means_of_the_newest_evaluations_are_compared_widest_first(api, pair):
    first, second = pair
    sampled(first, 10, a=[0.9], b=[0.9], c=[0.9])  # an earlier evaluation counts no more
    sampled(first, 20, a=[0.2, 0.4], b=[0.5], c=[0.8, None], mine=[1.0])
    sampled(first, 21, "train", a=[0.0], b=[0.0])
    sampled(second, 15, a=[0.6, 0.6], b=[0.5], c=[0.1], none=[None], his=[0.3], hers=[0.4])
    told = api.get("/runs/table/prompts", first=first.pk, second=second.pk).json()
    assert told["steps"] == [20, 15] and told["shared"] == 3 and told["unscored"] == 0 and told["only"] == [1, 3]
    assert [(row["key"], round(row["difference"], 9)) for row in told["prompts"]] == [
        ("c", -0.7),
        ("a", 0.3),
        ("b", 0.0),
    ]
    assert told["prompts"][0]["first"] == {"mean": 0.8, "n": 1, "missing": 1}
    assert told["prompts"][0]["text"].startswith("What is c?") and len(told["prompts"][0]["text"]) == prompts_apart.TEXT
    assert told["mean"]["value"] == pytest.approx((-0.7 + 0.3 + 0.0) / 3) and told["mean"]["n"] == 3
    assert told["mean"]["low"] < told["mean"]["value"] < told["mean"]["high"]
    back = api.get("/runs/table/prompts", first=second.pk, second=first.pk, limit=1).json()
    assert [(row["key"], round(row["difference"], 9)) for row in back["prompts"]] == [("c", 0.7)]


def test_a_prompt_without_a_reward_in_one_run_is_in_no_difference_and_is_counted(api, pair):
    first, second = pair
    sampled(first, 1, a=[0.5], b=[None, None])
    sampled(second, 1, a=[0.75], b=[0.0])
    told = api.get("/runs/table/prompts", first=first.pk, second=second.pk).json()
    assert (told["shared"], told["unscored"]) == (2, 1) and [row["key"] for row in told["prompts"]] == ["a"]
    assert told["mean"]["value"] == 0.25


def test_a_run_without_an_evaluation_says_so(api, pair):
    first, second = pair
    sampled(first, 1, a=[0.5])
    sampled(second, 3, "train", a=[0.5])
    told = api.get("/runs/table/prompts", first=first.pk, second=second.pk).json()
    assert told["steps"] == [1, None] and told["prompts"] == [] and told["mean"]["value"] is None
    assert told["mean"]["undefined"] == "no prompt has a reward in both runs"


def test_it_takes_two_runs_of_the_workspace(api, make, team, pair):
    first, _ = pair
    same = api.get("/runs/table/prompts", first=first.pk, second=first.pk)
    assert same.status_code == 422 and same.json()["error"]["fields"][0]["path"] == "second"
    elsewhere = make("theirs", experiment="elsewhere")
    Experiment.objects.filter(pk=elsewhere.experiment_id).update(workspace=team.outsider.workspace)
    assert api.get("/runs/table/prompts", first=first.pk, second=elsewhere.pk).status_code == 404


def test_the_number_of_queries_does_not_grow_with_steps(pair):
    first, second = pair

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert prompts_apart.between(first, second).shared == 2
        return len(caught)

    for run in pair:
        sampled(run, 1, a=[0.5], b=[0.1])
    few = queries()
    for run in pair:
        for step in range(2, 12):
            sampled(run, step, "train", **{f"t{key}": [0.5] for key in range(5)})
    assert queries() == few == 5

"""One prompt through training: its steps with their rewards and lengths, found in an index."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient
from webapp.core.problems import Invalid
from webapp.experiments.models import Rollout
from webapp.experiments.rollouts import prompts, queries
from webapp.experiments.rollouts.queries import RolloutQuery


def row(run, step, index, reward, key="e0", group=0, phase="train", **content):
    place = {"run": run, "step": step, "phase": phase, "group": group, "index": index}
    content = {"prompt": f"Prompt {key} at {step}", "response": "red", "index": index} | content
    return Rollout(**place, example_key=key, reward=reward, content=content)


@pytest.fixture
def sampled(run):
    """`e0` in steps 1, 4 and 9 of training, twice in step 9, and once held out; `e1` in step 4."""
    Rollout.objects.bulk_create(
        [
            row(run, 1, 0, 0.0, tokens=["r", "ed"]),
            row(run, 1, 1, 1.0, tokens=["r", "ed", ".", "."]),
            row(run, 4, 0, 0.5),
            row(run, 4, 1, None, tokens=[]),
            row(run, 4, 0, 9.0, key="e1", group=1),
            row(run, 9, 0, 1.0),
            row(run, 9, 0, 0.0, group=2, response="bluish"),
            row(run, 9, 0, 0.25, phase="eval"),
        ]
    )
    return run


def test_steps_come_with_the_rewards_of_their_group_the_newest_first(sampled):
    found = prompts.steps(sampled, "e0", "train")
    assert [each["step"] for each in found["items"]] == [9, 4, 1]
    twice, lacking, first = found["items"]
    assert (first["responses"], first["mean"], first["low"], first["high"]) == (2, 0.5, 0.0, 1.0)
    assert first["spread"] == pytest.approx(0.5**0.5)  # of the sample
    assert (lacking["responses"], lacking["rewarded"], lacking["mean"], lacking["spread"]) == (2, 1, 0.5, None)
    assert twice["responses"] == 2, "two groups of one step are one step of the prompt"
    assert found["prompt"] == "Prompt e0 at 9" and found["phases"] == ["train", "eval"] and found["next"] is None


def test_lengths_are_of_the_responses_whose_tokens_were_recorded(sampled):
    twice, lacking, first = prompts.steps(sampled, "e0", "train")["items"]
    assert (first["tokens"], first["characters"]) == (3.0, 3.0)
    assert lacking["tokens"] is None and twice["tokens"] is None, "unknown, and not zero"
    assert twice["characters"] == 4.5
    assert "tokens" not in prompts.steps(sampled, "e0", "train", lengths=False)["items"][0]


def test_pages_follow_each_other_without_gap_or_repeat(sampled):
    first = prompts.steps(sampled, "e0", "train", limit=2)
    row(sampled, 12, 0, 1.0).save()  # a new step was sampled meanwhile
    second = prompts.steps(sampled, "e0", "train", limit=2, cursor=first["next"])
    assert [each["step"] for each in [*first["items"], *second["items"]]] == [9, 4, 1] and second["next"] is None
    with pytest.raises(Invalid):
        prompts.steps(sampled, "e0", "train", cursor="nonsense")
    other = queries.rollouts(sampled, RolloutQuery(), limit=1).next
    with pytest.raises(Invalid):
        prompts.steps(sampled, "e0", "train", cursor=other)


def test_more_steps_at_once_only_without_lengths(sampled):
    assert prompts.steps(sampled, "e0", "train", lengths=False, limit=2_000)["items"]
    with pytest.raises(Invalid) as refused:
        prompts.steps(sampled, "e0", "train", limit=101)
    assert "limit" in refused.value.fields


def test_rollouts_of_one_prompt(sampled):
    found = queries.rollouts(sampled, RolloutQuery(example_key="e0", phase="train"), limit=3)
    places = [(each.step, each.group, each.index) for each in found.items]
    rest = queries.rollouts(sampled, RolloutQuery(example_key="e0", phase="train"), limit=3, cursor=found.next)
    places += [(each.step, each.group, each.index) for each in rest.items]
    assert places == [(9, 2, 0), (9, 0, 0), (4, 0, 1), (4, 0, 0), (1, 0, 1), (1, 0, 0)] and rest.next is None
    of_step = queries.rollouts(sampled, RolloutQuery(example_key="e1", step=4))
    assert [each.reward for each in of_step.items] == [9.0]
    best = queries.rollouts(sampled, RolloutQuery(example_key="e0"), sort="-reward")
    assert best.items[0].reward == 1.0 and best.items[-1].reward is None


def test_an_index_answers(run):
    """The steps of a prompt are read from the index alone. Its responses begin at the cursor."""
    rows = [row(run, step, 0, 0.5, key=f"e{step % 40}") for step in range(4_000)]
    Rollout.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE experiments_rollout")

    def plan(ask) -> str:
        with CaptureQueriesContext(connection) as caught:
            ask()
        wanted = next(each["sql"] for each in caught if "experiments_rollout" in each["sql"])
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {wanted}")
            return "\n".join(line for (line,) in cursor.fetchall())

    steps = plan(lambda: prompts.steps(run, "e7", "train", lengths=False))
    assert "rollouts_of_a_prompt" in steps and "Sort" not in steps, steps
    wanted = RolloutQuery(example_key="e7", phase="train")
    page = queries.rollouts(run, wanted, limit=5)
    following = plan(lambda: queries.rollouts(run, wanted, limit=5, cursor=page.next))
    assert "rollouts_of_a_prompt" in following and "Sort" not in following and "(step <=" in following, following


def test_over_the_api(sampled, team):
    api, address = ApiClient(team.reviewer), f"/runs/{sampled.pk}/rollouts/prompt"
    answer = api.get(address + "?example_key=e0&limit=1")
    assert answer.status_code == 200 and answer.json()["items"][0]["step"] == 9
    following = api.get(f"{address}?example_key=e0&limit=1&cursor={answer.json()['next']}").json()
    assert following["items"][0]["step"] == 4
    unknown = api.get(address + "?example_key=nobody").json()
    assert (unknown["items"], unknown["prompt"], unknown["phases"]) == ([], None, [])
    assert api.get(address).status_code == 422, "which prompt is not said"
    assert api.get(address + "?example_key=e0&limit=500").status_code == 422
    assert api.get(address + "?example_key=e0&limit=500&lengths=false").status_code == 200
    listed = api.get(f"/runs/{sampled.pk}/rollouts?example_key=e1").json()["items"]
    assert [each["step"] for each in listed] == [4]
    assert ApiClient(team.annotator).get(address + "?example_key=e0").status_code == 403
    assert ApiClient(team.outsider).get(address + "?example_key=e0").status_code == 404


def test_the_page(sampled, team, client):
    client.force_login(team.reviewer.user)
    page = client.get(f"/runs/{sampled.pk}/prompt", {"key": "e0"})
    assert page.status_code == 200 and 'data-key="e0"' in page.content.decode()
    assert client.get(f"/runs/{sampled.pk}/prompt").headers["location"] == f"/runs/{sampled.pk}/rollouts"
    hostile = client.get(f"/runs/{sampled.pk}/prompt", {"key": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in hostile
    client.force_login(team.annotator.user)
    assert client.get(f"/runs/{sampled.pk}/prompt", {"key": "e0"}).status_code == 403

"""Episodes of any size are stored by turns, and are read one page of turns at a time."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient, browser
from trainer.contracts import RolloutRecord, RolloutTurn
from trainer.monitors import large_records
from webapp.experiments.models import EpisodeTurn, Rollout
from webapp.experiments.rollouts import episodes

pytestmark = pytest.mark.django_db
CALL = {"author": "policy", "kind": "call", "tool": "search", "call": "c1", "text": '{"q": "shelf"}', "tokens": 4}
RESULT = {
    "author": "env",
    "kind": "result",
    "tool": "search",
    "call": "c1",
    "text": "An EMPTY shelf.",
    "tokens": 3,
    "seconds": 1.5,
}
SAYS = {"author": "policy", "text": "Then I buy one.", "tokens": 5, "reward": 0.25}
TURNS = [CALL, RESULT, SAYS]


def turns_event(trainer, step, *turns, **fields):
    numbered = [{"number": number, **turn} for number, turn in enumerate(turns)]
    return trainer.event("turns", step, group=0, index=0, turns=numbered, **fields)


@pytest.fixture(params=["in the record", "apart"])
def episode(request, run, trainer) -> Rollout:
    """The same three turns, stored in either way."""
    if request.param == "apart":
        record = trainer.rollout(0, turns_apart=3, response="Then I buy one.")
        events = [turns_event(trainer, 1, *TURNS), trainer.event("rollouts", 1, rollouts=[record])]
    else:
        events = [trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, turns=TURNS, response="Then I buy one.")])]
    assert trainer.post(*events).status_code == 200
    return Rollout.objects.get(run=run)


def test_a_page_of_turns_says_who_did_what_and_has_no_texts(team, run, episode):
    page = ApiClient(team.reviewer).get(f"/runs/{run.pk}/rollouts/{episode.pk}/turns?limit=2").json()
    assert (page["total"], page["next"]) == (3, "2")
    assert [each["title"] for each in page["items"]] == ["Policy calls search", "Result of search"]
    assert [(each["call"], each["seconds"], each["size"]) for each in page["items"]] == [
        ("c1", None, 14),
        ("c1", 1.5, 15),
    ]
    (last,) = ApiClient(team.reviewer).get(f"/runs/{run.pk}/rollouts/{episode.pk}/turns?cursor=2").json()["items"]
    assert (last["number"], last["title"], last["reward"]) == (2, "Policy says", 0.25)
    text = ApiClient(team.reviewer).get(f"/runs/{run.pk}/rollouts/{episode.pk}/turns/1").json()
    assert text == {"number": 1, "part": 0, "text": "An EMPTY shelf.", "next": None}


def test_what_stands_in_a_turn_or_names_its_tool_is_found_in_any_case(team, run, episode):
    client = ApiClient(team.reviewer)
    address = f"/runs/{run.pk}/rollouts/{episode.pk}/search?q="
    assert [each["number"] for each in client.get(f"{address}empty").json()["items"]] == [1]
    assert [each["number"] for each in client.get(f"{address}SEARCH").json()["items"]] == [0, 1]
    assert client.get(f"{address}unheard").json() == {"items": [], "more": False}
    assert client.get(f"{address}%20").status_code == 422
    assert client.get(f"{address}100%25").json()["items"] == []


def test_the_sums_of_an_episode(episode):
    found = episodes.facts(episode)
    assert found == episodes.EpisodeFacts(3, 14 + 15 + 15, 12, 1, 1.5, 0.25)


def test_a_turn_that_is_not_there_is_not_found(team, run, episode):
    client = ApiClient(team.reviewer)
    for wrong in ("turns/3", "turns/0?part=1", "turns/0?part=9"):
        assert client.get(f"/runs/{run.pk}/rollouts/{episode.pk}/{wrong}").status_code == 404
    assert client.get(f"/runs/{run.pk}/rollouts/{episode.pk}/turns?cursor=77").json()["items"] == []
    assert client.get(f"/runs/{run.pk}/rollouts/{episode.pk}/turns?cursor=x").status_code == 422
    assert client.get(f"/runs/{run.pk}/rollouts/{episode.pk + 999}/turns").status_code == 404


def test_long_texts_are_read_in_parts_of_either_store(run, trainer, monkeypatch):
    monkeypatch.setattr(episodes, "PIECE", 4)
    trainer.post(trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, turns=[{**SAYS, "text": "abcdefghij"}])]))
    held = Rollout.objects.get(run=run)
    assert [episodes.text(held, 0, part).text for part in range(3)] == ["abcd", "efgh", "ij"]
    assert episodes.text(held, 0, 2).next is None and episodes.text(held, 0, 0).next == 1
    parts = [{**SAYS, "number": 0, "part": part, "text": text} for part, text in enumerate(("abcd", "efgh", "ij"))]
    trainer.post(
        trainer.event("turns", 2, group=0, index=0, turns=parts[:2]),
        trainer.event("turns", 2, group=0, index=0, turns=parts[2:]),
        trainer.event("rollouts", 2, rollouts=[trainer.rollout(0, turns_apart=1)]),
    )
    apart = Rollout.objects.get(run=run, step=2)
    assert [episodes.text(apart, 0, part).text for part in range(3)] == ["abcd", "efgh", "ij"]
    assert episodes.text(apart, 0, 2).next is None and episodes.text(apart, 0, 0).next == 1
    assert episodes.page(apart, 0, 10).items[0].size == 10 and episodes.facts(apart).tokens == 5


def test_an_episode_that_comes_again_replaces_the_old_one(run, trainer):
    trainer.post(
        turns_event(trainer, 1, *TURNS), trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, turns_apart=3)])
    )
    trainer.post(
        turns_event(trainer, 1, SAYS), trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, turns_apart=1)])
    )
    assert [(row.number, row.text) for row in EpisodeTurn.objects.filter(run=run)] == [(0, "Then I buy one.")]


def test_a_batch_that_is_sent_twice_is_stored_once(run, trainer):
    events = [
        turns_event(trainer, 1, *TURNS),
        trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, turns_apart=3)]),
    ]
    for _ in range(2):
        assert trainer.post(*events).status_code == 200
    assert EpisodeTurn.objects.filter(run=run).count() == 3


def test_an_episode_far_over_the_limit_of_a_post_comes_in_and_its_page_reads_no_text(team, run, trainer):
    """Nine megabytes; one POST takes four."""
    turns = tuple(
        RolloutTurn(author=("policy", "env")[n % 2], text=f"{n} " + "x" * 90_000, tokens=5) for n in range(100)
    )
    plain = trainer.rollout(0, response="the end")
    record = RolloutRecord.model_validate(plain | {"turns": [turn.model_dump() for turn in turns]})
    events, lighter = large_records.split(record, 1_000_000)
    for each in events:
        data = each.model_dump(mode="json")
        assert trainer.post(trainer.event(data.pop("kind"), 1, **data)).status_code == 200
    assert trainer.post(trainer.event("rollouts", 1, rollouts=[lighter.model_dump(mode="json")])).status_code == 200
    rollout = Rollout.objects.get(run=run)
    assert episodes.count(rollout) == 100 and EpisodeTurn.objects.count() == 100
    with CaptureQueriesContext(connection) as asked:
        page = browser(team.reviewer).get(f"/runs/{run.pk}/rollouts/{rollout.pk}/episode").content
    assert len(page) < 200_000 and b"100" in page
    assert not any('"experiments_episodeturn"."text"' in query["sql"] for query in asked)


def test_the_page_opens_at_the_turn_that_its_address_names(team, run, trainer):
    many = [{"author": "policy", "text": f"turn {n}", "tokens": 1} for n in range(250)]
    trainer.post(trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, turns=many), trainer.rollout(1)]))
    episode, plain = Rollout.objects.filter(run=run).order_by("index")
    page = browser(team.reviewer).get(f"/runs/{run.pk}/rollouts/{episode.pk}/episode?turn=201").content.decode()
    assert '"number": 200' in page and '"number": 199' not in page
    shown = browser(team.reviewer).get(f"/runs/{run.pk}/rollouts/{plain.pk}/episode")
    assert shown.status_code == 200 and "episode-turns" not in shown.content.decode()


def test_episodes_are_closed_to_annotators_and_other_workspaces(team, run, episode):
    for member, status in ((team.annotator, 403), (team.outsider, 404)):
        assert browser(member).get(f"/runs/{run.pk}/rollouts/{episode.pk}/episode").status_code == status
        for rest in ("turns", "turns/0", "search?q=x"):
            assert ApiClient(member).get(f"/runs/{run.pk}/rollouts/{episode.pk}/{rest}").status_code == status


def test_a_large_episode_cannot_be_sent_to_annotation_and_says_why(team, run, trainer):
    trainer.post(
        turns_event(trainer, 1, *TURNS), trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, turns_apart=3)])
    )
    body = {"kind": "trace_steps", "dataset": "d", "groups": [{"step": 1, "group": 0}]}
    reply = ApiClient(team.researcher).post(f"/runs/{run.pk}/rollouts/annotate", body)
    assert reply.status_code == 422 and "too large to be judged as a whole" in reply.content.decode()


def test_turns_go_with_their_run(run, trainer):
    trainer.post(turns_event(trainer, 1, *TURNS))
    run.delete()
    assert not EpisodeTurn.objects.exists()

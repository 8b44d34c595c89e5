"""The turns of episodes that are stored apart from their record are found by their words, like all other texts of a run."""

import pytest

from webapp.experiments.rollouts import indexing, queries, searching
from webapp.experiments.rollouts.queries import RolloutQuery

pytestmark = pytest.mark.django_db
TURNS = [
    {"author": "policy", "kind": "call", "tool": "search_web", "text": "ask for crimson paint", "tokens": 4},
    {"author": "env", "text": "a shelf of vermilion", "tokens": 3},
]


def apart(trainer, step, *turns, index=0):
    """The events of an episode whose turns are stored apart from its record."""
    numbered = [{"number": number, **turn} for number, turn in enumerate(turns)]
    record = trainer.rollout(index, turns_apart=len({each["number"] for each in numbered}), response="done")
    turns_event = trainer.event("turns", step, group=0, index=index, turns=numbered)
    return turns_event, trainer.event("rollouts", step, rollouts=[record])


def found_places(run, text):
    return [row.index for row in queries.rollouts(run, RolloutQuery(text=text)).items]


def test_the_turns_of_an_episode_that_lie_apart_are_searched_once_they_are_indexed(api, run, trainer):
    trainer.post(*apart(trainer, 1, *TURNS))
    reply = api.get(f"/runs/{run.pk}/rollouts?text=vermilion").json()
    assert reply["items"] == [] and reply["waiting"] == 1, "a search reads no episodes that are not indexed"
    indexing.index_due()
    assert api.get(f"/runs/{run.pk}/rollouts?text=vermilion").json()["waiting"] == 0
    for text in ("vermilion", "crimson shelf done", '"of vermilion"', "search_web"):
        assert len(found_places(run, text)) == 1, text
    assert found_places(run, '"shelf vermilion"') == found_places(run, "vermil") == []


def test_an_episode_that_comes_again_is_found_by_its_new_turns_alone(run, trainer):
    trainer.post(*apart(trainer, 1, *TURNS))
    indexing.index_due()
    trainer.post(*apart(trainer, 1, {"author": "policy", "text": "only scarlet", "tokens": 2}))
    indexing.index_due()
    assert len(found_places(run, "scarlet")) == 1
    assert found_places(run, "vermilion") == found_places(run, "crimson") == []


def test_words_and_phrases_at_the_seam_of_two_parts_are_found(run, trainer):
    parts = [
        {"number": 0, "part": 0, "author": "env", "text": "a long way to the sea", "tokens": 1},
        {"number": 0, "part": 1, "author": "env", "text": "shore and back", "tokens": 1},
    ]
    trainer.post(*apart(trainer, 1, *parts))
    indexing.index_due()
    assert len(found_places(run, "seashore")) == len(found_places(run, '"the seashore and"')) == 1
    assert found_places(run, '"the shore"') == []


@pytest.mark.parametrize("sort", [None, "-reward"])
def test_a_page_ends_where_its_episodes_are_too_long_and_the_next_goes_on(run, trainer, monkeypatch, sort):
    for index in range(3):
        trainer.post(*apart(trainer, 1, *TURNS, index=index))
    indexing.index_due()
    monkeypatch.setattr(searching, "MOST_READ", 10)
    cursor, pages = None, []
    while True:
        page = queries.rollouts(run, RolloutQuery(text='"of vermilion"'), sort=sort, cursor=cursor)
        pages.append([row.index for row in page.items])
        if (cursor := page.next) is None:
            break
    assert sorted(sum(pages, [])) == [0, 1, 2] and max(map(len, pages)) == 1

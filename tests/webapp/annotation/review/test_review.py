"""Consolidation: tasks that are resolved automatically, the decisions of a reviewer, and who may decide."""

import json
from urllib.parse import urlencode

import pytest

from tests.team import ApiClient, browser
from webapp.annotation.agreement import matching, refresh
from webapp.annotation.jobs import runner
from webapp.annotation.models import Answer, Assignment, Comment, Resolution, TaskReview
from webapp.annotation.review import queries

from ..answers import annotators, answer, grades, make_project, preference, ranking, ratings, rubric

pytestmark = pytest.mark.django_db


@pytest.fixture
def pairs(team):
    """Three tasks: unanimous, one step apart, opposite sides."""
    made = make_project(team, n=3)
    one, two = annotators(team, made)
    given = [(2, 2), (1, 2), (-3, 3)]
    for task, pair in zip(made.tasks.order_by("rank"), given, strict=True):
        answer(task, one, preference(pair[0], "A names its source."))
        answer(task, two, preference(pair[1], "The first names its source.", "B is too long."))
    refresh.bring_up_to_date(made)
    return made


def tasks(project):
    return list(project.tasks.order_by("rank"))


def test_the_unanimous_resolve_themselves_and_the_rest_waits_least_agreement_first(pairs, team):
    agreed, near, opposite = tasks(pairs)
    row = Resolution.objects.get()
    assert (row.task, row.source, row.content["strength"]) == (agreed, "unanimous", 2)
    listed = ApiClient(team.reviewer).get(f"/projects/{pairs.pk}/review").json()["items"]
    assert [each["task"] for each in listed] == [opposite.pk, near.pk]
    assert [each["agreement"] for each in listed] == sorted(each["agreement"] for each in listed)


def test_a_unanimous_task_keeps_each_reason_once(pairs):
    content = Resolution.objects.get().content
    assert [reason["text"] for reason in content["reasons"]] == ["A names its source.", "B is too long."]


def test_unanimity_ends_with_a_new_revision(pairs, team):
    task = tasks(pairs)[0]
    answer(task, team.annotator, preference(-1))
    refresh.bring_up_to_date(pairs)
    assert not Resolution.objects.exists()
    assert TaskReview.objects.get(task=task).agreement < 1


def test_what_a_reviewer_decided_stays_when_answers_change_and_says_so(pairs, team):
    api, task = ApiClient(team.reviewer), tasks(pairs)[1]
    shown = api.get(f"/tasks/{task.pk}/review").json()
    decide(api, task, shown, {"strength": {"action": "set", "value": "1"}}, drop=True)
    answer(task, team.annotator, preference(-3))
    refresh.bring_up_to_date(pairs)
    assert Resolution.objects.get(task=task).source == "consolidated"
    assert api.get(f"/tasks/{task.pk}/review").json()["resolution"]["stale"]


def decide(api, task, shown, decisions, drop=False):
    """With `drop`, every item row that is not named is dropped."""
    if drop:
        decisions = {row["id"]: {"action": "drop"} for row in shown["rows"] if row["type"] == "item"} | decisions
    answers = [person["answer"] for person in shown["people"]]
    return api.client.put(
        f"/api/v1/tasks/{task.pk}/resolution",
        json.dumps({"answers": answers, "decisions": decisions}),
        content_type="application/json",
    )


def test_reasons_and_strength_are_decided_row_by_row_with_a_trace(pairs, team):
    api, task = ApiClient(team.reviewer), tasks(pairs)[2]
    shown = api.get(f"/tasks/{task.pk}/review").json()
    strength, source, length = shown["rows"]
    assert len(source["items"]) == 2 and len(length["items"]) == 1
    second = shown["people"][1]["answer"]
    done = decide(
        api,
        task,
        shown,
        {
            "strength": {"action": "keep", "answer": second},
            source["id"]: {"action": "edit", "item": {"text": "A names a source."}},
            length["id"]: {"action": "drop"},
        },
    ).json()
    assert done["resolution"]["source"] == "consolidated"
    row = Resolution.objects.get(task=task)
    assert row.content["strength"] == 3 and [r["text"] for r in row.content["reasons"]] == ["A names a source."]
    assert row.decided_by == team.reviewer.user
    assert [part["action"] for part in row.trace] == ["consolidated", "keep", "edit", "drop"]
    assert row.trace[0]["answers"] == [person["answer"] for person in shown["people"]]
    assert row.trace[3]["of"] == [[second, 1]]


def test_reasons_that_are_too_long_together_are_not_cut_when_they_are_merged(team):
    made = make_project(team, n=1)
    api, task = ApiClient(team.reviewer), made.tasks.get()
    people = zip(annotators(team, made), "ab", strict=True)
    given = [answer(task, person, preference(2, letter * 1_500)).pk for person, letter in people]
    refresh.bring_up_to_date(made)
    groups = {"answers": given, "groups": [[[each, 0] for each in given]]}
    grouped = json.dumps(groups)
    shown = api.client.put(f"/api/v1/tasks/{task.pk}/groups", grouped, content_type="application/json").json()
    row = shown["rows"][1]["id"]
    told = decide(api, task, shown, {row: {"action": "merge"}})
    [field] = told.json()["error"]["fields"]
    assert (told.status_code, field["path"]) == (422, f"decisions.{row}")
    assert "has more than 2,000 characters" in field["message"]
    assert Resolution.objects.get(task=task).source == "unanimous"  # as before
    decide(api, task, shown, {row: {"action": "keep", "answer": given[0]}})
    assert Resolution.objects.get(task=task).content["reasons"][0]["text"] == "a" * 1_500


def test_a_row_without_decision_is_named(pairs, team):
    api, task = ApiClient(team.reviewer), tasks(pairs)[2]
    shown = api.get(f"/tasks/{task.pk}/review").json()
    refused = decide(api, task, shown, {}, drop=True)
    assert refused.status_code == 422
    assert refused.json()["error"]["fields"] == [{"path": "decisions.strength", "message": "needs a decision"}]
    assert not Resolution.objects.filter(task=task).exists()


def test_a_decision_about_answers_that_have_changed_is_refused(pairs, team):
    api, task = ApiClient(team.reviewer), tasks(pairs)[1]
    shown = api.get(f"/tasks/{task.pk}/review").json()
    answer(task, team.annotator, preference(-2))
    refused = decide(api, task, shown, {"strength": {"action": "set", "value": "1"}}, drop=True)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "answers_changed")


def test_undo_brings_back_what_was_replaced(pairs, team):
    api, task = ApiClient(team.reviewer), tasks(pairs)[0]
    shown = api.get(f"/tasks/{task.pk}/review").json()
    decide(api, task, shown, {"strength": {"action": "set", "value": "-1"}}, drop=True)
    assert Resolution.objects.get(task=task).content["strength"] == -1
    back = api.delete(f"/tasks/{task.pk}/resolution").json()
    assert back["resolution"]["source"] == "unanimous" and back["resolution"]["content"]["strength"] == 2
    assert api.delete(f"/tasks/{task.pk}/resolution").json()["resolution"]["source"] == "unanimous"


def test_undo_takes_back_only_the_decision_that_was_shown(pairs, team):
    """Two clicks, or two reviewers, undo one decision together, and not the one before it too."""
    api, task = ApiClient(team.reviewer), tasks(pairs)[0]
    for value in ("-1", "3"):
        shown = api.get(f"/tasks/{task.pk}/review").json()
        decide(api, task, shown, {"strength": {"action": "set", "value": value}}, drop=True)
    at = api.get(f"/tasks/{task.pk}/review").json()["resolution"]["at"]
    undo = f"/tasks/{task.pk}/resolution?{urlencode({'at': at})}"
    assert api.delete(undo).json()["resolution"]["content"]["strength"] == -1
    again = api.delete(undo)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "decided_since")
    assert Resolution.objects.get(task=task).content["strength"] == -1


def test_single_answers_come_last_in_the_list_of_all_on_whichever_page(pairs, team):
    alone = tasks(pairs)[0]
    Answer.objects.filter(assignment__task=alone).last().delete()
    pairs.tasks.filter(pk=alone.pk).update(overlap=1, done=1, taken=1)
    refresh.review_tasks(pairs, [alone.pk])
    ids, place = [], ""
    for _ in range(3):
        found, place = queries.least_agreement(pairs, "all", place, limit=1)
        ids += found
    assert place == "" and ids == [tasks(pairs)[2].pk, tasks(pairs)[1].pk, alone.pk]
    assert alone.pk not in queries.least_agreement(pairs, "open")[0]


def test_a_task_can_be_left_unresolved(pairs, team):
    api, task = ApiClient(team.reviewer), tasks(pairs)[2]
    answers = [person["answer"] for person in api.get(f"/tasks/{task.pk}/review").json()["people"]]
    body = json.dumps({"answers": answers, "unresolved": True, "why": "both are wrong"})
    done = api.client.put(f"/api/v1/tasks/{task.pk}/resolution", body, content_type="application/json").json()
    assert done["resolution"]["source"] == "unresolved" and done["resolution"]["why"] == "both are wrong"
    assert Resolution.objects.get(task=task).content is None


def test_majorities_are_accepted_in_bulk_and_taken_back(team):
    made = make_project(team, n=3, overlap=3)
    people = annotators(team, made, 3)
    for task, given in zip(tasks(made), [(1, 3, -1), (1, -1, 0), (2, 2, 2)], strict=True):
        for member, strength in zip(people, given, strict=True):
            answer(task, member, preference(strength))
    api = ApiClient(team.reviewer)
    assert api.post(f"/projects/{made.pk}/review/majority", {"minimum": 0}).json() == {"resolved": 1}
    first, split, _ = tasks(made)
    assert Resolution.objects.get(task=first).content["strength"] == 2  # the median of the strengths in favour of B
    assert Resolution.objects.get(task=first).source == "majority"
    assert not Resolution.objects.filter(task=split).exists()
    assert api.delete(f"/projects/{made.pk}/review/majority").json() == {"withdrawn": 1}
    assert [row.source for row in Resolution.objects.all()] == ["unanimous"]


def test_single_answers_can_be_accepted_on_the_page_of_a_project_that_asks_one_person(team):
    made = make_project(team, n=2, overlap=1)
    [person] = annotators(team, made, 1)
    for task, strength in zip(tasks(made), (1, -2), strict=True):
        answer(task, person, preference(strength))
    client = browser(team.reviewer)
    page = client.get(f"/projects/{made.pk}/review").content.decode()
    assert "2 tasks with a single answer wait to be accepted" in " ".join(page.split())
    assert "Every complete task is decided" not in page and page.count("Accept single answers") == 2
    client.post(f"/projects/{made.pk}/review/majority")
    assert [row.content["strength"] for row in Resolution.objects.order_by("task__rank")] == [1, -2]
    resolved = client.get(f"/projects/{made.pk}/review?show=resolved")
    assert [row.task for row in resolved.context["rows"]] == tasks(made)
    page = client.get(f"/projects/{made.pk}/review").content.decode()
    assert "Every complete task is decided" in page and 'data-open="majority-dialog"' not in page


def test_grades_of_three_have_a_majority_per_criterion(team):
    criteria = [{"id": "c1", "text": "Is true", "points": 5}, {"id": "c2", "text": "Is short", "points": 3}]
    made = make_project(team, "grading", n=1, overlap=3, rubric={"criteria": criteria})
    people = annotators(team, made, 3)
    given = [("met", "met"), ("met", "not_met"), ("not_met", "not_met")]
    for member, (one, two) in zip(people, given, strict=True):
        answer(tasks(made)[0], member, grades(c1=one, c2=two))
    assert ApiClient(team.reviewer).post(f"/projects/{made.pk}/review/majority", {}).json() == {"resolved": 1}
    assert {g["criterion"]: g["verdict"] for g in Resolution.objects.get().content["grades"]} == {
        "c1": "met",
        "c2": "not_met",
    }


@pytest.mark.parametrize(
    ("kind", "asked", "given", "decisions", "expected"),
    [
        (
            "grading",
            {"rubric": {"criteria": [{"id": "c1", "text": "Is true", "points": 5}]}},
            [grades(c1="met"), grades(c1="not_met")],
            {"criterion:c1": {"action": "drop"}},
            grades(c1="cannot_assess"),
        ),
        (
            "rating",
            {"scales": [{"name": "clarity"}]},
            [ratings(clarity=2), ratings(clarity=5)],
            {"scale:clarity": {"action": "set", "value": "4"}},
            ratings(clarity=4),
        ),
        (
            "ranking",
            {},
            [ranking("r1", "r2"), ranking("r2", "r1")],
            {"order": {"action": "set", "value": "A = B"}},
            ranking("r1 r2"),
        ),
    ],
)
def test_each_kind_is_consolidated(team, kind, asked, given, decisions, expected):
    made = make_project(team, kind, n=1, **asked)
    task = tasks(made)[0]
    for member, content in zip(annotators(team, made), given, strict=True):
        answer(task, member, content, order=(0,))
    refresh.bring_up_to_date(made)
    api = ApiClient(team.reviewer)
    shown = api.get(f"/tasks/{task.pk}/review").json()
    done = decide(api, task, shown, decisions)
    assert done.status_code == 200, done.content
    assert Resolution.objects.get(task=task).content == expected


def test_rubrics_are_consolidated_item_by_item_and_merging_takes_the_mean_of_points(team):
    made = make_project(team, "rubric", n=1)
    task = tasks(made)[0]
    one, two = annotators(team, made)
    answer(task, one, rubric(("Names three rivers of France", 4.0), "Is friendly"))
    answer(task, two, rubric(("Names exactly three rivers of France", 8.0), ("Invents a river", -5.0)))
    refresh.bring_up_to_date(made)
    api = ApiClient(team.reviewer)
    shown = api.get(f"/tasks/{task.pk}/review").json()
    rivers, friendly, invents = shown["rows"]
    decisions = {
        rivers["id"]: {"action": "merge"},
        friendly["id"]: {"action": "drop"},
        invents["id"]: {"action": "keep"},
    }
    assert decide(api, task, shown, decisions).status_code == 200
    criteria = Resolution.objects.get(task=task).content["rubric"]["criteria"]
    assert [(c["text"], c["points"]) for c in criteria] == [
        ("Names three rivers of France", 6),
        ("Invents a river", -5),
    ]
    assert len({c["id"] for c in criteria}) == 2
    only_pitfall = decisions | {rivers["id"]: {"action": "drop"}}
    assert decide(api, task, shown, only_pitfall).status_code == 422


def test_a_reviewer_can_say_what_means_the_same(team):
    made = make_project(team, "rubric", n=1)
    task = tasks(made)[0]
    one, two = annotators(team, made)
    first = answer(task, one, rubric("Stays under fifty words"))
    second = answer(task, two, rubric("Is concise"))
    refresh.bring_up_to_date(made)
    api = ApiClient(team.reviewer)
    body = {"answers": [first.pk, second.pk], "groups": [[[first.pk, 0], [second.pk, 0]]]}
    done = api.client.put(f"/api/v1/tasks/{task.pk}/groups", json.dumps(body), content_type="application/json").json()
    assert len(done["rows"]) == 1 and done["matcher"] == "a reviewer"
    assert TaskReview.objects.get(task=task).agreement == 1
    refresh.bring_up_to_date(made)
    assert TaskReview.objects.get(task=task).matcher == "a reviewer"
    body["groups"] = [[[first.pk, 0]]]
    again = api.client.put(f"/api/v1/tasks/{task.pk}/groups", json.dumps(body), content_type="application/json")
    assert again.status_code == 422


def matched(project):
    """The job that matches by meaning: a person asked for it, and it is done."""
    assert matching.ask(project, again=True)
    job = project.jobs.get(kind="match")
    runner.run(job.pk)
    job.refresh_from_db()
    return job


def test_items_are_matched_by_the_process_and_by_words_where_it_fails(team, monkeypatch, settings):
    made = make_project(team, "rubric", n=1)
    task = tasks(made)[0]
    one, two = annotators(team, made)
    answer(task, one, rubric("Stays under fifty words"))
    answer(task, two, rubric("Is concise"))
    refresh.bring_up_to_date(made)
    settings.MATCH_COMMAND = ["false"]
    assert matched(made).state == "failed"
    page = browser(team.reviewer).get(f"/projects/{made.pk}/agreement").content.decode()
    assert "The texts were matched by words, not by meaning" in page and "the matcher failed" in page
    script = (
        'import sys,json\nprint(json.dumps({"matcher":"m"}))\n'
        'for line in sys.stdin: print(json.dumps({"id":json.loads(line)["id"],"groups":[[[0,0],[1,0]]]}))'
    )
    settings.MATCH_COMMAND = ["python3", "-c", script]
    assert not matching.ask(made)  # it has just failed
    job = matched(made)
    assert (job.state, job.done, job.result) == ("finished", 1, {"tasks": 1, "gold": 0})
    review = TaskReview.objects.get(task=task)
    assert (review.matcher, review.agreement, len(review.groups)) == ("m", 1, 1)


def test_an_answer_sent_back_leaves_the_table_until_it_is_submitted_again(
    pairs, team, django_capture_on_commit_callbacks
):
    api, task = ApiClient(team.reviewer), tasks(pairs)[0]
    seat = task.assignments.get(user=team.annotator.user)
    with django_capture_on_commit_callbacks(execute=True):
        sent = api.post(f"/assignments/{seat.pk}/send-back", {"words": "Look at the year again."}).json()
    assert sent == {"assignment": seat.pk, "state": "claimed", "sent_back": "Look at the year again."}
    assert not Resolution.objects.filter(task=task).exists()
    assert len(api.get(f"/tasks/{task.pk}/review").json()["people"]) == 1
    assert Assignment.objects.get(pk=seat.pk).draft["strength"] == 2
    assert api.post(f"/assignments/{seat.pk}/send-back", {"words": "Again."}).status_code == 409
    assert api.post(f"/assignments/{seat.pk}/send-back", {"words": " "}).status_code == 422


def test_remarks_and_wishes_for_the_guidelines(pairs, team):
    api, task = ApiClient(team.reviewer), tasks(pairs)[1]
    assert (
        api.post(f"/tasks/{task.pk}/comments", {"kind": "guidelines", "text": "Say what a tie is."}).status_code == 201
    )
    assert api.post(f"/tasks/{task.pk}/comments", {"text": ""}).status_code == 422
    page = browser(team.researcher).get(f"/projects/{pairs.pk}/review").content.decode()
    assert "Say what a tie is." in page and "New guideline version" in page
    [listed] = api.get(f"/projects/{pairs.pk}/comments", kind="guidelines").json()["items"]
    assert listed["by"] == str(team.reviewer.user) and f"{listed['by']}, <time" in page
    assert api.post(f"/comments/{listed['id']}/settle").json()["resolved_at"]
    assert Comment.objects.get().resolved_at and api.get(f"/projects/{pairs.pk}/comments").json()["items"] == []


def test_the_pages_cost_the_same_number_of_queries_with_more_tasks(team, django_assert_max_num_queries):
    made = make_project(team, n=30)
    one, two = annotators(team, made)
    for task in tasks(made):
        answer(task, one, preference(1))
        answer(task, two, preference(-1))
    client = browser(team.reviewer)
    client.get(f"/projects/{made.pk}/review")
    with django_assert_max_num_queries(24):
        assert client.get(f"/projects/{made.pk}/review").status_code == 200


def test_the_roles(pairs, team):
    task = tasks(pairs)[1]
    seat = task.assignments.first()
    reads = [f"/tasks/{task.pk}/review", f"/projects/{pairs.pk}/review", f"/projects/{pairs.pk}/comments"]
    posts = [
        (f"/projects/{pairs.pk}/review/majority", {}),
        (f"/tasks/{task.pk}/comments", {"text": "x"}),
        (f"/assignments/{seat.pk}/send-back", {"words": "x"}),
    ]
    for who, status in ((team.annotator, 403), (team.outsider, 404)):
        api = ApiClient(who)
        assert [api.get(path).status_code for path in reads] == [status] * 3
        assert [api.post(path, body).status_code for path, body in posts] == [status] * 3
        decided = api.client.put(
            f"/api/v1/tasks/{task.pk}/resolution", '{"answers": []}', content_type="application/json"
        )
        assert decided.status_code == status and api.delete(f"/tasks/{task.pk}/resolution").status_code == status
        for page in (f"/projects/{pairs.pk}/review", f"/projects/{pairs.pk}/review/{task.pk}"):
            assert browser(who).get(page).status_code == status
    for who in (team.reviewer, team.researcher, team.owner):
        assert [ApiClient(who).get(path).status_code for path in reads] == [200] * 3
        assert browser(who).get(f"/projects/{pairs.pk}/review/{task.pk}").status_code == 200


def test_the_reviewer_learns_neither_names_nor_models(pairs, team):
    task = tasks(pairs)[1]
    page = browser(team.reviewer).get(f"/projects/{pairs.pk}/review/{task.pk}").content.decode()
    assert "Annotator 1" in page and "Anna" not in page and "model-x" not in page

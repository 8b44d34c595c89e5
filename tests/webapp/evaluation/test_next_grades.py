"""From a score that people correct to tasks for people, and back to a narrower interval."""

import pytest

from tests.concurrency import concurrently
from tests.pages import page_html
from tests.team import browser, make_team
from webapp.annotation.models import Project, Task
from webapp.annotation.publishing import services as publish
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import Dataset
from webapp.evaluation.models import Case, Evaluation
from webapp.evaluation.recipes.policies.corrected import NEXT, place
from webapp.evaluation.studies import next_grades

from .judged_scores import answer_all_tasks, carried_out, first_model_cells, make_judged_evaluation

pytestmark = pytest.mark.django_db


def interval(row: Evaluation) -> float:
    cell = first_model_cells(row)["Corrected"]
    return cell["high"] - cell["low"]


def round_of_grades(team, row: Evaluation) -> Evaluation:
    """Tasks, answers, a version with these answers by the defaults, and the evaluation that reads it."""
    project, new = next_grades.make(team.researcher, row)
    assert new and project.state == "open"
    answer_all_tasks(team.researcher, project)
    assert Task.objects.filter(project=project).count() == first_model_cells(row)["To grade next"]["value"]
    publish.publish(team.researcher, project)
    return carried_out(next_grades.correct(team.researcher, row))


def test_grades_of_one_person_narrow_the_interval_to_the_wanted_width(team):
    row = make_judged_evaluation(team.researcher)
    assert first_model_cells(row)["Corrected"]["low"] is None and first_model_cells(row)["To grade next"]["value"] == 20
    assert next_grades.needed(row).first
    once = round_of_grades(team, row)
    cell = first_model_cells(once)["Corrected"]
    assert cell["n"] == 20 and interval(once) > 2 * 0.15
    need = next_grades.needed(once)
    assert (need.first, need.prompts, need.why) == (False, first_model_cells(once)["To grade next"]["value"], "")
    twice = round_of_grades(team, once)
    assert first_model_cells(twice)["Corrected"]["n"] == 20 + need.prompts
    assert interval(twice) < interval(once)
    assert interval(twice) / 2 == pytest.approx(0.15, abs=0.02), "the plan rests on what the first 20 show"
    assert [each["dataset"] for each in twice.config["graded"]] == [
        next_grades.project_of(each).version.dataset_id for each in (row, once)
    ]
    assert twice.rerun_of == once and twice.benchmark == row.benchmark


def test_the_tasks_are_the_marked_responses_in_the_order_of_the_draw(team):
    row = make_judged_evaluation(team.researcher)
    project, _ = next_grades.make(team.researcher, row, overlap=2)
    answer_all_tasks(team.researcher, project, people=2)
    marked = Case.objects.filter(evaluation=row, tags__contains=[NEXT])
    tasks = Task.objects.filter(project=project).order_by("rank")
    assert {(t.example.key, t.subject["response"]) for t in tasks} == {
        (each.subject["example"], each.subject["response"]) for each in marked
    }
    keys = [task.example.key for task in tasks]
    assert keys == sorted(keys, key=place), "those that are answered first are a random part"
    assert set(tasks.values_list("overlap", flat=True)) == {2}
    assert project.version.lineage["evaluation"] == row.pk


def test_a_second_press_leads_to_the_same_project(team, api):
    row = make_judged_evaluation(team.researcher)
    path = f"/evaluations/{row.pk}/grade-next"
    before = api.get(path).json()
    assert (before["responses"], before["first"], before["half_width"], before["project"]) == (20, True, 0.15, None)
    first, second = api.post(path, {"overlap": 1}), api.post(path, {"overlap": 3, "name": "Another"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["project"] == second.json()["project"] == Project.objects.get().pk
    answer_all_tasks(team.researcher, Project.objects.get())
    made = publish.publish(team.researcher, Project.objects.get())
    found = api.get(path).json()
    assert (found["tasks"], found["complete"], found["published"]) == (20, 20, made.version.number)
    assert found["corrected"] is None
    again = next_grades.correct(team.researcher, row, "key")
    assert next_grades.correct(team.researcher, row, "key") == again
    assert api.get(path).json()["corrected"] == again.pk


@pytest.mark.django_db(transaction=True)
def test_two_tabs_make_one_project():
    lab = make_team().researcher
    row = make_judged_evaluation(lab, prompts=24)
    got = concurrently([lambda: next_grades.make(lab, Evaluation.objects.get(pk=row.pk))] * 8)
    assert [new for _, new in got].count(True) == 1
    assert {project.pk for project, _ in got} == {Project.objects.get().pk}
    assert Dataset.objects.filter(versions__lineage__evaluation=row.pk).count() == 1


def test_what_cannot_be_made_says_why(team, api):
    row = make_judged_evaluation(team.researcher)
    with pytest.raises(Conflict, match="not published yet"):
        next_grades.correct(team.researcher, row)
    with pytest.raises(Invalid) as refused:
        next_grades.make(team.researcher, row, overlap=0)
    assert "overlap" in refused.value.fields and not Project.objects.exists()
    assert not Dataset.objects.filter(versions__lineage__evaluation=row.pk).exists()
    case = Case.objects.filter(evaluation=row, tags__contains=[NEXT]).first()
    case.values["criteria"][0]["text"] = "Is another rubric's"
    case.save()
    refused = api.post(f"/evaluations/{row.pk}/grade-next", {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_gradable")
    assert "Of 20 responses, 1 cannot be graded" in refused.json()["error"]["message"]
    Evaluation.objects.filter(pk=row.pk).update(state="failed")
    for answer in (api.get(f"/evaluations/{row.pk}/grade-next"), api.post(f"/evaluations/{row.pk}/grade-next", {})):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_corrected")


def test_why_there_is_nothing_to_grade(team):
    row = make_judged_evaluation(team.researcher, prompts=24)
    Case.objects.filter(evaluation=row).update(tags=[])
    cells = next(each for each in row.results["blocks"] if each["title"] == "Corrected by people")["rows"][0]
    cells[-1]["value"] = 0
    assert "No prompt is left" in next_grades.needed(row).why
    cells[3]["low"] = 0.4
    assert "as narrow as it should be" in next_grades.needed(row).why
    cells[-1]["value"] = None
    assert "would not be enough" in next_grades.needed(row).why
    with pytest.raises(Conflict, match="No prompt is left"):
        Evaluation.objects.filter(pk=row.pk).update(results=row.results | {"blocks": _without_low(row)})
        next_grades.make(team.researcher, row)


def _without_low(row: Evaluation) -> list[dict]:
    cells = next(each for each in row.results["blocks"] if each["title"] == "Corrected by people")["rows"][0]
    cells[-1]["value"], cells[3]["low"] = 0, None
    return row.results["blocks"]


def test_the_page_makes_the_tasks_and_says_who_may(team, as_researcher):
    row = make_judged_evaluation(team.researcher)
    address = f"/evaluations/{row.pk}"
    reviewer = browser(team.reviewer)
    seen = page_html(reviewer.get(address))
    assert "Researchers and owners make annotation projects" in seen and "Create annotation tasks" not in seen
    assert reviewer.post(f"{address}/grade-next").status_code == 403
    page = page_html(as_researcher.get(address))
    assert "20 responses to 20 prompts" in page and "Create annotation tasks" in page
    wrong = as_researcher.post(f"{address}/grade-next", {"overlap": "0"}, headers={"HX-Request": "true"})
    assert "People per response must be between 1 and" in page_html(wrong)
    made = as_researcher.post(f"{address}/grade-next", {"overlap": "1"})
    assert made.url == f"{address}#grade-next"
    project = Project.objects.get()
    page = page_html(as_researcher.get(address))
    assert "Create annotation tasks" not in page and f"/projects/{project.pk}" in page
    refused = as_researcher.post(f"{address}/correct", follow=True)
    assert "The grades are not published yet" in page_html(refused)
    answer_all_tasks(team.researcher, project)
    assert "Publish the answers" in page_html(as_researcher.get(address))
    answers = page_html(as_researcher.get(f"/projects/{project.pk}/answers"))
    assert 'value="answers" checked' in answers and 'value="resolutions" checked' not in answers
    publish.publish(team.researcher, project)
    assert "Correct the score" in page_html(as_researcher.get(address))
    again = as_researcher.post(f"{address}/correct", {"key": "k"})
    latest = Evaluation.objects.latest("id")
    assert again.url == f"/evaluations/{latest.pk}" and latest.rerun_of_id == row.pk
    assert f"Evaluation {latest.pk}" in page_html(reviewer.get(address))

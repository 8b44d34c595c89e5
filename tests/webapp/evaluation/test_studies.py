"""From a RubricBench evaluation to people in two arms, and back to a number."""

import json
from typing import Any

import pytest

from tests.team import browser
from tests.webapp.annotation.seed import make_annotators
from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric
from trainer.judges.calls import expand
from trainer.judges.inputs import of_example
from webapp.annotation.models import Assignment, Project, Task
from webapp.annotation.people import services as participants
from webapp.annotation.projects import task_services as making
from webapp.annotation.work import queue
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation
from webapp.evaluation.studies import services as studies
from webapp.evaluation.work import running
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RecordedOutput
from webapp.judging.judges.services import create_judge

pytestmark = pytest.mark.django_db
HUMAN = Rubric(criteria=(Criterion(id="h1", text="Says why", points=3), Criterion(id="h2", text="Rambles", points=-2)))


def example(i: int) -> Example:
    return Example(
        key=f"p{i}",
        prompt=(Message(role="user", content=f"Question {i}"),),
        rubric=HUMAN,
        responses=tuple(Response(id=name, text=f"{name} {i}") for name in ("a", "b", "c")),
        preferences=(Preference(a="a", b="b", strength=-2, rater="gold"),),
    )


EXAMPLES = [example(i) for i in range(4)]


@pytest.fixture
def evaluated(team) -> Evaluation:
    """A finished evaluation with recorded judges. The generator wrote a rubric for all pairs except p3."""
    made = datasets.create_dataset(team.researcher, "rubricbench")
    version = datasets.new_version(team.researcher, made, EXAMPLES, None, {"from": "test"})
    endpoint = endpoints.create_endpoint(team.researcher, "recorded", name="tape")
    specs: dict[str, dict[str, Any]] = {
        "generator": {"kind": "rubric_generator", "retries": 0},
        "judge": {"kind": "pairwise_rubric", "order": "given", "scale": "forced"},
    }
    judges = {
        name: create_judge(team.researcher, name=name, spec=spec, endpoint=endpoint) for name, spec in specs.items()
    }
    items = [{"text": "Is kind", "kind": "principle", "importance": "important", "points": 2}]
    outputs = []
    for i, each in enumerate(EXAMPLES):
        for call in expand(judges["generator"].resolved, judges["generator"].digest, of_example(each, pair=True)):
            text = "no rubric today" if i == 3 else json.dumps({"items": items})
            outputs.append(RecordedOutput(endpoint=endpoint, key=call.key, text=text))
    RecordedOutput.objects.bulk_create(outputs)
    config = {"rubric_judge": judges["judge"].pk, "generator": judges["generator"].pk}
    row = services.create(team.researcher, recipe="rubricbench", config=config, dataset=version)
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == "finished", row.problem
    return row


def staffed(team, project: Project, count: int):
    making.make(project.pk)
    project.refresh_from_db()
    people = make_annotators(team.researcher, count)
    for person in people:
        participants.add_participant(team.researcher, project, person.user)
    return people


def answer(people, project, strength_of):
    for person in people:
        for _ in range(20):
            for seat in queue.claim(person, project, 1):
                content = {"verdict": "compared", "strength": strength_of(seat)}
                queue.submit(person, seat, content)


def test_every_pair_with_both_rubrics_is_judged_once_in_each_arm_and_the_result_reads_them(team, evaluated):
    project = studies.make(team.researcher, evaluated, name="Which rubric", people=1)
    one, two = staffed(team, project, 2)
    assert (project.state, project.tasks_total) == ("open", 6)  # three pairs; p3 has no rubric of the model
    assert {task.subject["arm"] for task in Task.objects.all()} == {"human", "own"}

    def right_by_the_human_rubric(seat):
        """The person sees the pair in `order`. A strength below 0 is for the response that is first."""
        right = seat.task.subject["arm"] == "human"
        return (-2 if right else 2) * (1 if seat.order == [0, 1] else -1)

    answer((one, two), project, right_by_the_human_rubric)
    for person in (one, two):
        assert Assignment.objects.filter(user=person.user).count() == 3
    row = studies.read(team.researcher, project)
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == "finished", row.problem
    cell = row.results["headline"]["cell"]
    assert (cell["value"], cell["n"]) == (1.0, 3)
    assert row.cases.get(number=1).values["rubric"] in (["Says why", "Rambles"], ["Is kind"])
    again = services.rerun(team.researcher, row)
    running.run(again.pk)
    again.refresh_from_db()
    assert again.results == row.results


def test_the_page_starts_a_study_and_reads_it(team, evaluated, as_researcher, django_capture_on_commit_callbacks):
    page = as_researcher.get(f"/evaluations/{evaluated.pk}").content.decode()
    assert "Start a study" in page
    done = as_researcher.post(f"/evaluations/{evaluated.pk}/study", {"name": "By page", "people": "1"})
    project = Project.objects.get(name="By page")
    assert done.url == f"/projects/{project.pk}"
    answer(staffed(team, project, 1), project, lambda seat: 0)
    assert "By page" in (page := as_researcher.get(f"/evaluations/{evaluated.pk}").content.decode())
    read = as_researcher.post(f"/evaluations/{evaluated.pk}/study/{project.pk}/read", {"key": "k"})
    row = Evaluation.objects.get(recipe="study")
    assert read.url == f"/evaluations/{row.pk}" and row.config["project"] == project.pk
    running.run(row.pk)
    for path in ("", "/cases", "/cases/1", "/config", "/export/html"):
        assert as_researcher.get(f"/evaluations/{row.pk}{path}").status_code == 200


def test_the_api_makes_and_lists_studies(team, evaluated, as_researcher):
    reviewer = browser(team.reviewer)
    base = f"/api/v1/evaluations/{evaluated.pk}/studies"
    made = as_researcher.post(base, {"name": "By script", "people": 2}, content_type="application/json")
    assert made.status_code == 201
    (listed,) = reviewer.get(base).json()["items"]
    assert (listed["project"], listed["name"], listed["answers"]) == (made.json()["project"], "By script", 0)
    assert reviewer.post(base, {"name": "x"}, content_type="application/json").status_code == 403
    as_researcher.post(base, {"name": "Another", "people": 2}, content_type="application/json")
    first = reviewer.get(base, {"limit": 1}).json()
    rest = reviewer.get(base, {"limit": 1, "cursor": first["next"]}).json()
    assert [each["name"] for each in (*first["items"], *rest["items"])] == ["Another", "By script"] and not rest["next"]
    wrong = as_researcher.post(base, {"name": "y", "people": 99}, content_type="application/json")
    assert wrong.status_code == 422 and "people" in wrong.content.decode()


def test_what_has_no_two_rubrics_makes_no_study(team, evaluated, finished):
    with pytest.raises(Conflict):
        studies.make(team.researcher, finished, name="none")
    with pytest.raises(Invalid) as refused:
        studies.make(team.researcher, evaluated, name="none", tags=["no own rubric"])
    assert "tag" in refused.value.fields


def test_another_workspaces_study_is_refused_at_its_field(team, evaluated):
    from trainer.config.errors import ConfigInvalid

    project = studies.make(team.researcher, evaluated, name="Ours")
    with pytest.raises(ConfigInvalid) as refused:
        services.create(team.outsider, recipe="study", config={"project": project.pk})
    assert "project" in {problem.path for problem in refused.value.problems}

"""People grade a share of the responses that a judge has graded, without its verdicts. The share is drawn once, asked once, and compared."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from tests.pages import page_html
from tests.team import ApiClient, make_team
from tests.webapp.annotation.answers import annotators, answer, grades
from tests.webapp.experiments.conftest import Trainer, make_version
from trainer.config import ConfigInvalid, PolicyConfig
from trainer.contracts import Criterion, Example, Message, Response, Rubric
from webapp.accounts.models import Membership, User
from webapp.annotation.models import Project, Task
from webapp.annotation.projects import grading, task_services
from webapp.annotation.projects import services as projects
from webapp.datasets.versions import services as datasets
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.experiments.models import GradedResponse, Rollout, Run
from webapp.experiments.people import human_grades
from webapp.inference.models import RegisteredModel

State = GradedResponse.State
CRITERIA = (Criterion(id="c1", text="Names a colour", points=3), Criterion(id="c2", text="Is polite", points=1))


def give_rubrics(membership, run) -> None:
    """The run's examples have criteria that a judge decides."""
    prompt = (Message(role="user", content="Name one."),)
    dataset = datasets.create_dataset(membership, "rubrics")
    records = [Example(key="e0", prompt=prompt, rubric=Rubric(criteria=CRITERIA))]
    version = datasets.freeze(membership, datasets.new_version(membership, dataset, records, None, {"from": "test"}))
    Run.objects.filter(pk=run.pk).update(dataset_version=version)


@pytest.fixture
def asking(run, team):
    """A run that sends every judged response to people."""
    give_rubrics(team.researcher, run)
    Run.objects.filter(pk=run.pk).update(config={**run.config, "people": {"share": 1.0}, "seed": 0}, state="starting")
    run.refresh_from_db()
    return run


def judged_response(index: int, met: bool | None = True, source: str = "judge", **fields) -> dict:
    """A response with the same verdict of the judge on both criteria."""
    criteria = [
        {"text": each.text, "points": each.points, "kind": each.kind, "verdict": {"criterion_id": each.id, "met": met, "source": source}}
        for each in CRITERIA
    ]  # fmt: skip
    plain = {"example_key": "e0", "group": 0, "index": index, "prompt": "p", "response": f"Red {index}"}
    return plain | {"finish_reason": "stop", "reward": 1.0, "criteria": criteria} | fields


def send(run, *rollouts: dict, step: int = 1) -> Trainer:
    trainer = Trainer(run)
    sent = trainer.post(trainer.event("rollouts", step, rollouts=list(rollouts)))
    assert sent.status_code == 200, sent.content
    return trainer


@pytest.fixture
def ask_people(asking):
    """`ask_people(*rollouts)`: sends the rollouts and lets the worker make their tasks."""

    def _asked(*rollouts: dict, step: int = 1) -> None:
        asking.refresh_from_db()
        send(asking, *rollouts, step=step)
        human_grades.ask(asking.pk)

    return _asked


def test_judged_responses_become_tasks_of_one_standing_project_blind_to_the_judge(asking, ask_people):
    ask_people(judged_response(0, True), judged_response(1, False))
    ask_people(judged_response(0, True), step=2)
    project = Project.objects.get()
    assert (project.name, project.kind, project.state) == ("Judge against people", "grading", "open")
    assert project.version.counts["examples"] == 3
    tasks = list(Task.objects.filter(project=project).order_by("id"))
    assert [task.example.content["responses"][0]["text"] for task in tasks] == ["Red 0", "Red 1", "Red 0"]
    assert [each["text"] for each in tasks[0].example.content["rubric"]["criteria"]] == [
        "Names a colour",
        "Is polite",
    ]
    assert "met" not in tasks[0].example.canonical and project.settings["suggestions"] == "never"
    rows = GradedResponse.objects.order_by("id")
    assert [(row.state, row.verdicts) for row in rows][:2] == [
        (State.ASKED, {"c1": True, "c2": True}),
        (State.ASKED, {"c1": False, "c2": False}),
    ]


def test_what_comes_twice_is_drawn_once_and_asked_once(asking, ask_people):
    ask_people(judged_response(0), judged_response(1))
    ask_people(judged_response(0), judged_response(1))  # with new numbers, like a resumed run that sends a step again
    human_grades.ask(asking.pk)
    assert (GradedResponse.objects.count(), Task.objects.count()) == (2, 2)


def test_only_what_a_judge_has_decided_is_asked_and_only_those_criteria(asking, ask_people):
    half = judged_response(3)
    half["criteria"][1]["verdict"]["source"] = "verifier"
    ask_people(
        judged_response(0, source="verifier"), judged_response(1, met=None), judged_response(2, criteria=[]), half
    )
    row = GradedResponse.objects.get()
    assert (row.index, row.verdicts) == (3, {"c1": True})
    assert [each["id"] for each in row.task.example.content["rubric"]["criteria"]] == ["c1"]


def test_the_draw_depends_on_seed_and_place_alone_and_keeps_the_share(asking):
    Run.objects.filter(pk=asking.pk).update(config={**asking.config, "people": {"share": 0.25}})
    asking.refresh_from_db()
    send(asking, *[judged_response(index) for index in range(200)])
    drawn = set(GradedResponse.objects.values_list("index", flat=True))
    assert drawn == {i for i in range(200) if human_grades.chance(0, (1, "train", 0, i)) < 0.25}
    assert 30 <= len(drawn) <= 70
    assert drawn != {i for i in range(200) if human_grades.chance(1, (1, "train", 0, i)) < 0.25}


def test_nobody_is_asked_unless_the_run_says_so(run):
    Run.objects.filter(pk=run.pk).update(state="starting")
    send(run, judged_response(0))
    assert not GradedResponse.objects.exists()
    assert human_grades.agreement(run) is None


def test_what_a_dead_worker_left_waiting_is_asked_later_even_after_the_end(asking, monkeypatch):
    monkeypatch.setattr(grading, "grade", lambda *_: 1 / 0)
    send(asking, judged_response(0))
    with pytest.raises(ZeroDivisionError):
        human_grades.ask(asking.pk)
    assert GradedResponse.objects.get().state == State.WAITING
    monkeypatch.undo()
    Run.objects.filter(pk=asking.pk).update(state="finished")
    queued = []
    monkeypatch.setattr(human_grades, "enqueue", lambda name, run_id: queued.append(run_id))
    monkeypatch.setattr(human_grades, "LOST_AFTER", timedelta(0))
    human_grades.ask_waiting()
    assert queued == [asking.pk]
    human_grades.ask(asking.pk)
    assert GradedResponse.objects.get().state == State.ASKED


def test_a_response_that_people_cannot_be_asked_about_says_why(asking, ask_people):
    ask_people(judged_response(0, example_key="unknown"), judged_response(1))
    left, made = GradedResponse.objects.order_by("index")
    assert (left.state, left.problem) == (State.LEFT_OUT, "the dataset has no rubric for it")
    assert made.state == State.ASKED
    Rollout.objects.all().delete()
    GradedResponse.objects.create(run=asking, step=9, phase="train", group=0, index=0)
    human_grades.ask(asking.pk)
    assert GradedResponse.objects.get(step=9).problem == "the response is gone"


@pytest.mark.parametrize("change", [{"role": "annotator"}, {"user__is_active": False}])
def test_people_are_asked_in_the_name_of_an_owner_if_who_launched_may_not_any_more(asking, ask_people, team, change):
    if "role" in change:
        Membership.objects.filter(pk=team.researcher.pk).update(**change)
    else:
        User.objects.filter(pk=team.researcher.user_id).update(is_active=False)
    ask_people(judged_response(0))
    assert Project.objects.get().created_by == team.owner.user


def test_a_closed_project_is_followed_by_the_next(asking, ask_people, team):
    ask_people(judged_response(0))
    projects.set_state(team.researcher, Project.objects.get(), Project.State.CLOSED)
    ask_people(judged_response(1))
    assert list(Project.objects.order_by("id").values_list("name", flat=True)) == [
        "Judge against people",
        "Judge against people 2",
    ]


def test_agreement_counts_what_most_people_say(asking, ask_people, team, django_assert_num_queries):
    """Judge: both met. People on response 0: met and not met, met and met. On response 1: not met, by the only one who could tell. So the
    judge agrees on one of two decided criteria, and on one criterion people are split.
    """
    ask_people(judged_response(0), judged_response(1))
    first, second = Task.objects.order_by("id")
    one, two = annotators(team, first.project)
    answer(first, one, grades(c1="met", c2="met"))
    answer(first, two, grades(c1="not_met", c2="met"))
    answer(second, one, grades(c1="not_met", c2="cannot_assess"))
    found = human_grades.agreement(asking)
    assert (found.drawn, found.responses, found.decided, found.agreeing, found.undecided) == (2, 2, 2, 1, 1)
    assert found.value == 0.5
    assert 0.05 < found.low < 0.5 < found.high < 0.95, "of two responses"
    with django_assert_num_queries(3):
        human_grades.agreement(asking)
    ask_people(*[judged_response(index) for index in range(2, 9)])
    with django_assert_num_queries(3):
        human_grades.agreement(asking)


def test_the_run_page_shows_judge_against_people(asking, ask_people, as_researcher, as_annotator, team):
    ask_people(judged_response(0))
    page = page_html(as_researcher.get(f"/runs/{asking.pk}"))
    assert "Nobody has graded a response yet" in page and "1 response drawn" in page
    task = Task.objects.get()
    answer(task, annotators(team, task.project)[0], grades(c1="met", c2="met"))
    fragment = page_html(as_researcher.get(f"/runs/{asking.pk}/people"))
    assert "of 2 verdicts on 1 response agree" in fragment and f"/projects/{task.project_id}" in fragment
    assert as_annotator.get(f"/runs/{asking.pk}/people").status_code in (403, 404)


def test_the_api_gives_the_agreement_and_both_answers_of_every_case(
    asking, ask_people, api, team, django_assert_max_num_queries
):
    ask_people(judged_response(0), judged_response(1), judged_response(2), judged_response(3, example_key="unknown"))
    first, second, _ = Task.objects.order_by("id")
    one, two = annotators(team, first.project)
    answer(first, one, grades(c1="met", c2="not_met"))
    answer(first, two, grades(c1="met", c2="met"))
    answer(second, one, grades(c1="not_met", c2="cannot_assess"))
    path = f"/runs/{asking.pk}/people"
    told = api.get(path).json()
    assert (told["drawn"], told["left_out"], told["decided"], told["agreeing"], told["undecided"]) == (4, 1, 2, 1, 1)
    assert told["low"] < told["value"] == 0.5 < told["high"] and told["project"]["name"] == "Judge against people"
    found, cursor = [], ""
    while cursor is not None:
        with django_assert_max_num_queries(9):
            body = api.get(f"{path}/cases?limit=3{f'&cursor={cursor}' if cursor else ''}").json()
        found, cursor = found + body["items"], body["next"]
    assert [each["response"] for each in found] == ["Red 0", "Red 1", "Red 2", ""]
    assert [(each["met"], each["not_met"], each["people"], each["agree"]) for each in found[0]["criteria"]] == [
        (2, 0, True, True),
        (1, 1, None, None),
    ]
    wrong, open_ = found[1]["criteria"]
    assert (wrong["text"], wrong["judge"], wrong["people"], wrong["agree"]) == ("Names a colour", True, False, False)
    assert (open_["met"], open_["not_met"], open_["agree"]) == (0, 0, None)
    assert [each["agree"] for each in found[2]["criteria"]] == [None, None]
    assert (found[3]["state"], found[3]["problem"]) == ("left_out", "the dataset has no rubric for it")
    assert sum(each["agree"] is True for case in found for each in case["criteria"]) == told["agreeing"]


def test_verdicts_of_a_judge_are_kept_from_annotators_and_from_other_workspaces(asking, ask_people, team):
    ask_people(judged_response(0))
    for path in ("people", "people/cases", "judges"):
        address = f"/runs/{asking.pk}/{path}"
        assert ApiClient(team.reviewer).get(address).status_code == 200
        assert ApiClient(team.annotator).get(address).status_code == 403
        assert ApiClient(team.outsider).get(address).status_code == 404


def test_of_a_run_that_asks_nobody_the_api_says_so(run, api):
    told = api.get(f"/runs/{run.pk}/people").json()
    assert (told["share"], told["drawn"], told["value"], told["project"]) == (0, 0, None, None)
    assert api.get(f"/runs/{run.pk}/people/cases").json() == {"items": [], "next": None}


@pytest.fixture
def own_project(team) -> Project:
    """An open grading project of the workspace, on a separate dataset."""
    prompt = (Message(role="user", content="Mine?"),)
    dataset = datasets.create_dataset(team.researcher, "mine")
    response = Response(id="r", text="Yes")
    records = [Example(key="m0", prompt=prompt, rubric=Rubric(criteria=CRITERIA), responses=(response,))]
    version = datasets.freeze(
        team.researcher, datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})
    )
    made = projects.create(team.researcher, name="My grades", kind="grading", dataset=version)
    made = projects.set_state(team.researcher, made, Project.State.OPEN)
    task_services.make(made.pk)
    made.refresh_from_db()
    return made


def test_a_run_may_name_the_project_that_asks(asking, ask_people, own_project, team):
    Run.objects.filter(pk=asking.pk).update(graded_in=human_grades.chosen(team.workspace.pk, named("My grades")))
    ask_people(judged_response(0))
    assert Project.objects.get() == own_project and human_grades.agreement(asking).project == own_project
    assert Task.objects.filter(project=own_project).count() == 2
    own_project.refresh_from_db()
    assert own_project.version.number == 2 and own_project.version.counts["examples"] == 2
    Run.objects.filter(pk=asking.pk).update(graded_in=None)
    ask_people(judged_response(1))
    assert {each.name for each in Project.objects.all()} == {"My grades", "Judge against people"}, (
        "what one run names is not the standing project of the others"
    )


def test_where_the_named_project_is_closed_the_standing_one_goes_on(asking, ask_people, own_project, team):
    Run.objects.filter(pk=asking.pk).update(graded_in=own_project)
    projects.set_state(team.researcher, own_project, Project.State.CLOSED)
    ask_people(judged_response(0))
    assert Task.objects.latest("id").project.name == "Judge against people"


def named(project: str, share: float = 0.5) -> dict:
    return {"people": {"share": share, "project": project}}


def test_only_a_project_that_fits_can_be_named(own_project, team):
    def why(**changes) -> str:
        Project.objects.filter(pk=own_project.pk).update(**changes)
        return human_grades.unfit(team.workspace.pk, "My grades")

    assert why() == "" and human_grades.unfit(team.workspace.pk, "No such") == "no project is called 'No such'"
    assert [each.name for each in grading.fitting(team.workspace.pk, 10)] == ["My grades"]
    assert human_grades.unfit(team.outsider.workspace_id, "My grades") == "no project is called 'My grades'"
    assert human_grades.chosen(team.workspace.pk, named("My grades", share=0.0)) is None
    assert "influence what people say" in why(settings={"suggestions": "before"})
    assert grading.fitting(team.workspace.pk, 10) == []
    assert "is closed" in why(settings={}, state="closed")
    assert "does not grade" in why(state="open", kind="pairwise")
    with_more = Example(key="m1", prompt=(Message(role="user", content="More?"),))
    newer = datasets.new_version(
        team.researcher, own_project.version.dataset, [with_more], own_project.version, {"from": "test"}
    )
    assert newer.number == 2 and "older version" in why(kind="grading")


def test_a_launch_with_a_project_that_does_not_fit_is_refused_at_its_field(own_project, team, version, model):
    choice = checks.DatasetChoice(id=version.dataset_id)
    config = {"rewards": [{"kind": "rubric", "name": "r", "judge": "G v1"}], **named("No such", 0.1)}
    with pytest.raises(ConfigInvalid) as refused:
        launch.launch(team.researcher, recipe="policy", config=config, dataset=choice)
    assert (
        "no project is called 'No such'"
        in {each.path: each.message for each in refused.value.problems}["people.project"]
    )


def test_a_run_that_asks_nobody_has_no_such_fragment(run, as_researcher):
    assert as_researcher.get(f"/runs/{run.pk}/people").status_code == 404
    assert "Judge against people" not in page_html(as_researcher.get(f"/runs/{run.pk}"))


def test_a_share_needs_a_judge_of_criteria():
    def problems(**part) -> list[str]:
        config = PolicyConfig.model_validate({"people": {"share": 0.1}, "rewards": [part]})
        return [each.path for each in config.problems() if each.path.startswith("people")]

    assert problems(kind="verifier", name="v") == ["people.share"]
    assert problems(kind="judge", name="j", judge="G v1", protocol="pointwise") == ["people.share"]
    assert problems(kind="rubric", name="r") == ["people.share"]
    assert problems(kind="rubric", name="r", judge="G v1") == []
    assert problems(kind="judge", name="j", judge="G v1", shadow=True) == []


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_the_same_moment_ask_once():
    team = make_team()
    version = make_version(team.owner)
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/m")
    choice = checks.DatasetChoice(id=version.dataset_id)
    run = launch.launch(team.researcher, recipe="policy", config={"steps": 4}, dataset=choice)
    give_rubrics(team.researcher, run)
    Run.objects.filter(pk=run.pk).update(config={**run.config, "people": {"share": 1.0}})
    rows = [GradedResponse(run=run, step=1, phase="train", group=0, index=index) for index in range(3)]
    GradedResponse.objects.bulk_create(rows)
    places: list[dict[str, Any]] = [
        {"run": run, "step": 1, "phase": "train", "group": 0, "index": index} for index in range(3)
    ]
    Rollout.objects.bulk_create(
        [Rollout(**place, example_key="e0", content=judged_response(place["index"])) for place in places]
    )
    barrier = threading.Barrier(2)

    def work() -> None:
        barrier.wait()
        human_grades.ask(run.pk)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (Project.objects.count(), Task.objects.count()) == (1, 3)
    assert set(GradedResponse.objects.values_list("state", flat=True)) == {State.ASKED}

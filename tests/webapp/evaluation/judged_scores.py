"""Responses with scores of a judge, and people who disagree about some of them, for corrected scores."""

import json

from trainer.contracts import Criterion, Example, Message, Response, Rubric
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from webapp.accounts.models import Membership, Role, User
from webapp.annotation.models import Project
from webapp.annotation.people import services as participants
from webapp.annotation.projects import task_services
from webapp.annotation.work import queue
from webapp.datasets.models import Example as Row
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation
from webapp.evaluation.work import running
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RecordedOutput
from webapp.judging.judges.services import create_judge

RUBRIC = Rubric(criteria=(Criterion(id="c", text="Is kind", points=2),))


def example(i: int) -> Example:
    return Example(
        key=f"p{i}",
        prompt=(Message(role="user", content=f"Question {i}"),),
        rubric=RUBRIC,
        responses=(
            Response(id="r", text=f"answer {i}", origin="mine"),
            Response(id="unasked", text="?", origin="another"),
        ),
    )


def judge_says(i: int) -> bool:
    return i % 2 == 0


def people_say(i: int) -> bool:
    return judge_says(i) if i % 5 > 1 else not judge_says(i)


def make_judged_evaluation(membership: Membership, prompts: int = 120, half_width: float = 0.15) -> Evaluation:
    """A finished evaluation of the first response to each prompt, by a judge with recorded verdicts."""
    listed = [example(i) for i in range(prompts)]
    version = datasets.new_version(membership, datasets.create_dataset(membership, "Prompts"), listed, None, {})
    endpoint = endpoints.create_endpoint(membership, "recorded", name="tape")
    judge = create_judge(membership, name="Kind", spec={"kind": "criterion", "retries": 0}, endpoint=endpoint)
    outputs = []
    for i, each in enumerate(listed):
        asked = JudgeInput(each.key, each.prompt, {"0.r": each.responses[0].text}, RUBRIC.criteria, "")
        for call in expand(judge.resolved, judge.digest, asked):
            text = json.dumps({"explanation": "", "met": judge_says(i)})
            outputs.append(RecordedOutput(endpoint=endpoint, key=call.key, text=text))
    RecordedOutput.objects.bulk_create(outputs)
    config = {"judge": judge.pk, "responses": [{"origin": "mine"}], "half_width": half_width, "embeddings": False}
    return carried_out(services.create(membership, recipe="policy", config=config, dataset=version, name="Scores"))


def carried_out(row: Evaluation) -> Evaluation:
    running.run(row.pk)
    row.refresh_from_db()
    assert row.state == "finished", row.problem
    return row


def first_model_cells(row: Evaluation) -> dict[str, dict]:
    """The cells of the first model in the report, by the words of their columns."""
    found = next(each for each in row.results["blocks"] if each["title"] == "Corrected by people")
    return dict(zip([words for words, _ in found["columns"]], found["rows"][0], strict=True))


def answer_all_tasks(membership: Membership, project: Project, people: int = 1) -> None:
    """This many new people answer every task of the project."""
    task_services.make(project.pk)
    for n in range(people):
        user = User.objects.create(email=f"{project.pk}-{n}@example.org", name=f"P{n}")
        person = Membership.objects.create(user=user, workspace=membership.workspace, role=Role.ANNOTATOR)
        participants.add_participant(membership, project, person.user)
        while seats := queue.claim(person, project, 1):
            key = Row.objects.get(pk=seats[0].task.example_id).key
            verdict = "met" if people_say(int(key[1:])) else "not_met"
            queue.submit(person, seats[0], {"grades": [{"criterion": "c", "verdict": verdict}]}, seconds=9.0)

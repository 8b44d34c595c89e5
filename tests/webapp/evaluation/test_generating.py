"""Models answer a dataset's prompts, by jobs of the cluster or through endpoints. They answer once, also if a process dies."""

from decimal import Decimal
from typing import Any, Literal

import pytest
from django.db import OperationalError, connection, transaction

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from tests.webapp.experiments.conftest import make_version
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from tests.webapp.usage.usage_rows import usage_rows
from tests.webapp.weights.conftest import Process
from trainer.config.errors import ConfigInvalid
from trainer.contracts import Example
from trainer.judges.calls import Call
from trainer.judges.chat import ChatReply, ChatRequest
from trainer.judges.engine import Outcome
from trainer.judges.sampling import Sampling
from webapp.accounts.administration.closing import close
from webapp.accounts.models import Membership, Role
from webapp.annotation.projects import task_services as making
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch import services
from webapp.evaluation.models import EndpointAnswer, Evaluation
from webapp.evaluation.sources import answering
from webapp.evaluation.studies import tasks as asking
from webapp.evaluation.work import running
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.weights import line
from webapp.weights.models import WeightsJob

from .conftest import make_examples

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(team):
    return make_version(team.owner)


def begun(team, version, *writers, **config) -> Evaluation:
    config = {"writers": list(writers), "split": "", "max_new_tokens": 16, **config}
    return services.create(team.researcher, recipe="generate", config=config, dataset=version)


def carried_on(row: Evaluation) -> float | None:
    delay = running.run(row.pk)
    row.refresh_from_db()
    return delay


def answer(job: WeightsJob, *texts: str) -> None:
    """The cluster's process answers all five prompts in the same way, and ends."""
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    job.refresh_from_db()
    process = Process(job)
    said = [{"text": text, "finish_reason": "stop", "tokens": 2} for text in texts]
    rows = [{"key": f"e{number}", "responses": said} for number in range(4)]
    rows += [{"key": "e4", "problem": "needs 9 tokens and the model sees 8"}]
    assert process.post(1, *rows, total=5).status_code == 200
    assert process.post(1, state="finished").status_code == 200


def test_a_model_behind_an_endpoint_answers_once_and_is_scored(team, version, chat_server, endpoint):  # noqa: F811
    chat_server.answer = lambda body: "red" if "Prompt 0" in body["messages"][-1]["content"] else "blue"
    row = begun(team, version, {"endpoint": endpoint.pk}, samples=2, into="answers")
    assert carried_on(row) is None and row.state == "finished", row.problem
    assert chat_server.requests == 10 and row.results["headline"]["cell"]["value"] == pytest.approx(0.2)
    sent = list(chat_server.bodies)
    assert {body["max_tokens"] for body in sent} == {16} and {body["temperature"] for body in sent} == {0.7}
    assert {body["seed"] for body in sent} == {0, 1}, "two samples of a prompt are two draws"
    assert row.cases.count() == 10 and row.cases.filter(values__text="red").count() == 2
    again = services.rerun(team.researcher, row)
    carried_on(again)
    assert usage_rows() == [("evaluation", row.pk, 10, team.researcher.user_id)]
    assert chat_server.requests == 10 and again.results == row.results
    made = DatasetVersion.objects.get(dataset__name="answers")
    assert row.results["made"] == {"dataset": made.dataset_id, "name": "answers", "version": 1}
    first = Example.model_validate(made.members.order_by("position")[0].example.content)
    assert [(each.text, each.origin) for each in first.responses] == [("red", "judge")] * 2
    assert first.meta["generated"][first.responses[1].id]["sample"] == 1 and first.rubric is not None
    assert made.lineage["from"] == "generated" and made.lineage["sampling"]["temperature"] == 0.7


@pytest.mark.parametrize("gone", ["member", "role", "closed"])
def test_nothing_is_made_for_a_person_who_may_not_make_it(team, version, chat_server, endpoint, gone):  # noqa: F811
    row = begun(team, version, {"endpoint": endpoint.pk}, into="answers")
    member = Membership.objects.get(pk=team.researcher.pk)
    if gone == "closed":
        close(member.user, "the directory")
    elif gone == "role":
        Membership.objects.filter(pk=member.pk).update(role=Role.REVIEWER)
    else:
        member.delete()
    assert carried_on(row) is None and row.state == "finished", "the answers and their numbers are kept"
    assert row.results["made"] == {
        "problem": "The person who asked for the dataset may no longer create datasets in this workspace. Run the evaluation again."
    }
    assert not Dataset.objects.filter(name="answers").exists()


def test_a_killed_worker_asks_nothing_twice(team, version, chat_server, endpoint, monkeypatch):  # noqa: F811
    row = begun(team, version, {"endpoint": endpoint.pk})

    def killed(*given) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dies:
        dies.setattr(running.RecipeWork, "_note", killed)  # called once a batch is stored
        with pytest.raises(KeyboardInterrupt):
            running.run(row.pk)
    stored = EndpointAnswer.objects.filter(state="done").count()
    asked = chat_server.requests
    assert stored
    carried_on(row)
    assert row.state == "finished" and EndpointAnswer.objects.count() == 5
    assert chat_server.requests - asked == 5 - stored
    assert usage_rows() == [("evaluation", row.pk, 5, team.researcher.user_id)]


def outcome(state: Literal["done", "missing", "failed"], text: str, cost: Decimal) -> Outcome:
    call = Call("k" * 64, ChatRequest((), Sampling()), {}, "{}")
    reply = ChatReply(text, "stop", 2**40, 0, 3, 0.5, 1)
    return Outcome(call, state, {"finish_reason": "stop"}, text, "" if text else "it did not answer", reply, cost)


def test_an_answer_takes_the_place_of_a_failure_once_and_absurd_numbers_cost_none(endpoint):  # noqa: F811
    def stored(state: Any, text: str) -> EndpointAnswer:
        answering._store(endpoint, [outcome(state, text, Decimal(10**9))])
        return EndpointAnswer.objects.get()

    assert stored("failed", "").state == "failed"
    row = stored("done", "red")
    assert (row.state, row.text, row.problem) == ("done", "red", "")
    assert (row.prompt_tokens, row.completion_tokens, row.cost) == (None, 3, 999_999)
    assert stored("done", "blue").text == "red" and stored("failed", "").text == "red"


def test_a_budget_and_a_gone_endpoint_pause_it(team, version, chat_server, endpoint):  # noqa: F811
    chat_server.answer = lambda body: "red and blue " * 20
    row = begun(team, version, {"endpoint": endpoint.pk}, budget={"tokens": 100})
    carried_on(row)
    assert row.state == "paused" and "The budget is used up" in row.problem
    assert 0 < EndpointAnswer.objects.count() < 5
    Endpoint.objects.update(archived_at="2026-01-01T00:00Z")
    other = begun_unchecked(team, version, endpoint)
    carried_on(other)
    assert other.state == "paused" and "archived" in other.problem
    Endpoint.objects.update(archived_at=None)
    services.move(team.researcher, other, "queued")
    carried_on(other)
    assert other.state == "finished"


def begun_unchecked(team, version, endpoint) -> Evaluation:  # noqa: F811
    """The endpoint was archived after it was chosen."""
    Endpoint.objects.update(archived_at=None)
    row = begun(team, version, {"endpoint": endpoint.pk}, seed=4)
    Endpoint.objects.update(archived_at="2026-01-01T00:00Z")
    return row


def test_prompts_without_an_answer_say_why(team, version, chat_server, endpoint):  # noqa: F811
    chat_server.faults.extend(["context_overflow"] * 2)
    row = begun(team, version, {"endpoint": endpoint.pk}, into="answers")
    carried_on(row)
    lost = row.cases.filter(tags__contains=["no response"])
    assert row.state == "finished" and lost.count() == 2 and all(case.values["problem"] for case in lost)
    assert DatasetVersion.objects.get(dataset__name="answers").counts["examples"] == 3
    asked = chat_server.requests
    carried_on(services.rerun(team.researcher, row))
    assert chat_server.requests - asked == 2


def test_a_model_of_the_registry_answers_by_a_job_and_no_thread_waits(team, version, model):
    row = begun(team, version, {"model": model.pk}, samples=2, into="answers", sampler={"max_batch": 8})
    assert carried_on(row) == running.LOOK_AGAIN_S and row.state == "queued"
    job = row.jobs.get()
    assert (job.kind, job.params["samples"], job.params["sampler"]["max_batch"]) == ("generate", 2, 8)
    assert carried_on(row) == running.LOOK_AGAIN_S and row.progress["phase"] == "waiting for the cluster"
    answer(job, "red", "blue")
    assert carried_on(row) is None and row.state == "finished", row.problem
    assert row.progress == {"phase": "", "done": 5, "total": 5}, "its last look was before the job had answered"
    assert row.results["headline"]["cell"]["value"] == 0.5 and row.cases.count() == 9
    assert DatasetVersion.objects.get(dataset__name="answers").counts["examples"] == 4
    again = services.rerun(team.researcher, row)
    assert carried_on(again) is None and again.jobs.get() == job, "what was generated once is not generated again"
    page = browser(team.researcher).get(f"/jobs/{job.pk}").content.decode()
    assert f"/evaluations/{row.pk}" in page


def test_its_cases_become_pairs_for_people(team, version, model):
    row = begun(team, version, {"model": model.pk}, samples=2)
    carried_on(row)
    answer(row.jobs.get(), "red", "blue")
    carried_on(row)
    project = asking.make_tasks(team.researcher, row, [], name="Which is better", kind="pairwise")
    making.make(project.pk)
    task = project.tasks.first()
    assert [each["text"] for each in task.example.content["responses"]] == ["red", "blue"]


def test_pausing_stops_the_job_a_failure_pauses_and_resuming_retries(team, version, model):
    row = begun(team, version, {"model": model.pk})
    carried_on(row)
    services.move(team.researcher, row, "paused")
    job = row.jobs.get()
    assert job.state == "stopped" and carried_on(row) is None and row.state == "paused"
    services.move(team.researcher, row, "queued")
    assert carried_on(row) == running.LOOK_AGAIN_S
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 2)
    WeightsJob.objects.filter(pk=job.pk).update(state="failed", problem="out of memory")
    assert carried_on(row) is None
    assert row.state == "paused" and "The job of m has failed: out of memory" in row.problem


def test_a_job_that_cannot_begin_pauses_it_with_whole_sentences(team, version, model):
    row = begun(team, version, {"model": model.pk})
    RegisteredModel.objects.filter(pk=model.pk).update(source="run", path="/nowhere/m")
    assert carried_on(row) is None and row.state == "paused"
    assert row.problem.startswith(
        "The model cannot be loaded: the files of m are gone: there is no folder /nowhere/m. Answers are kept"
    )


def test_the_reason_of_a_failed_job_ends_with_one_period(team, version, model):
    row = begun(team, version, {"model": model.pk})
    carried_on(row)
    WeightsJob.objects.update(state="failed", problem="The judge was deleted in the meantime.")
    carried_on(row)
    assert row.problem.startswith("The job of m has failed: The judge was deleted in the meantime. Answers are kept")


def test_a_job_that_two_evaluations_wait_for_goes_on(team, version, model):
    one, two = (begun(team, version, {"model": model.pk}) for _ in range(2))
    carried_on(one), carried_on(two)
    services.move(team.researcher, one, "cancelled")
    assert two.jobs.get().state == "queued"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("to", ["cancelled", "paused"])
def test_nobody_changes_the_line_while_jobs_are_stopped(team, version, model, monkeypatch, to):
    """The line locks jobs in its own order, and an evaluation locks them by their ids. At the same time, each could wait for the other."""
    row = begun(team, version, {"model": model.pk})
    carried_on(row)
    stop_jobs, held = answering.stop_jobs, []

    def seen(evaluation: Evaluation) -> None:
        held.extend(concurrently([line_is_held]))
        stop_jobs(evaluation)

    monkeypatch.setattr(answering, "stop_jobs", seen)
    services.move(team.researcher, row, to)
    assert held == [True] and row.jobs.get().state == "stopped"


def line_is_held() -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '200ms'")
            line.lock()
    except OperationalError:
        return True
    return False


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"writers": [{}]}, "writers.0.model"),
        ({"writers": [{"model": 10**6}]}, "writers.0.model"),
        ({"writers": [{"endpoint": 10**6}]}, "writers.0.endpoint"),
        ({"writers": [{"model": "M"}, {"model": "M"}]}, "writers.1.model"),
        ({"writers": [{"model": "SCALAR"}]}, "writers.0.model"),
        ({"samples": 0}, "samples"),
        ({"into": "old"}, "into"),
        ({"into": "x" * 200}, "into"),
        ({"sampler": {"kind": "vllm", "push": "adapters"}}, "sampler.push"),
    ],
)
def test_what_cannot_work_is_refused_at_its_field(team, version, model, config, field):
    Dataset.objects.create(workspace=team.workspace, name="old", archived_at="2026-01-01T00:00Z")
    scalar = RegisteredModel.objects.create(workspace=team.workspace, name="s", source="hub", path="o/s", head="scalar")
    known = {"M": model.pk, "SCALAR": scalar.pk}
    for writer in config.get("writers", []):
        writer |= {key: known.get(value, value) for key, value in writer.items()}
    with pytest.raises(ConfigInvalid) as caught:
        begun(team, version, *config.pop("writers", [{"model": model.pk}]), **config)
    assert field in {problem.path for problem in caught.value.problems}
    assert not Evaluation.objects.exists() and not WeightsJob.objects.exists()


def test_another_workspace_names_no_model_of_ours_and_the_api_starts_one(team, api, version, model):
    config = {"writers": [{"model": model.pk}], "split": ""}
    asked = {"recipe": "generate", "config": config, "dataset": {"id": version.dataset_id}}
    assert ApiClient(team.outsider).post("/evaluations", asked).status_code in (404, 422)
    assert ApiClient(team.reviewer).post("/evaluations", asked).status_code == 403
    assert api.post("/evaluations", asked).status_code == 201


def test_the_form_is_filled_in_by_a_link(team, version, model):
    page = (
        browser(team.researcher).get(f"/evaluations/new?recipe=generate&at.writers.0.model={model.pk}").content.decode()
    )
    assert f'<option value="{model.pk}" selected' in page


def test_reward_models_of_the_registry_stand_in_the_reward_benchmark(team):
    scalar = RegisteredModel.objects.create(
        workspace=team.workspace, name="rm", source="hub", path="o/s", head="scalar"
    )
    version = datasets.new_version(
        team.researcher, datasets.create_dataset(team.researcher, "pairs"), make_examples(4), None, {}
    )
    config = {"models": [{"model": scalar.pk}], "max_groups": 3}
    row = services.create(team.researcher, recipe="reward_benchmark", config=config, dataset=version)
    assert carried_on(row) == running.LOOK_AGAIN_S
    job = row.jobs.get()
    assert (job.kind, job.params["max_prompts"], job.total) == ("score", 3, 0)
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    job.refresh_from_db()
    process = Process(job)
    right = [{"key": f"p{i}", "scores": {"a": 1.0, "b": 2.0 if i else 0.0}, "problems": {}} for i in range(2)]
    process.post(1, *right, {"key": "p2", "scores": {"a": 1.0}, "problems": {"b": "is too long"}})
    process.post(1, state="finished")
    assert carried_on(row) is None and row.state == "finished", row.problem
    assert row.results["headline"]["label"] == "Best of a list of rm"
    with pytest.raises(ConfigInvalid) as caught:
        config = {"models": [{"model": scalar.pk}] * 2}
        services.create(team.researcher, recipe="reward_benchmark", config=config, dataset=version)
    assert [problem.path for problem in caught.value.problems] == ["models.1.model"]

"""From people's comparisons to a policy, and from there to a second round on its own answers: real training processes on the
tiny model, against the real server."""

import json
import os
import re
import subprocess
import sys
import time
from ipaddress import ip_network

import pytest

from tests.stack import ROOT
from tests.trainer.chat_beside import chat_server
from tests.trainer.conftest import tiny_dir  # noqa: F401 - a fixture
from tests.webapp.annotation.answers import annotators, answer, make_project, preference
from webapp.annotation.services import publish
from webapp.experiments import asking, services, tokens
from webapp.experiments.checks import DatasetChoice
from webapp.experiments.models import Rollout, Run, RunQuestion
from webapp.inference import services as registry
from webapp.inference.models import RegisteredModel
from webapp.judging.services import create_judge

_ANSWERS = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)
SMALL = {"batch_size": 2, "evaluation": {"every": 0, "max_examples": 0}, "checkpoint": {"every": 9, "keep": 1}}


def prefers_more_vowels(body) -> str:
    """By what is written, never by its place."""
    first, second = (sum(text.count(v) for v in "aeiou") for text in _ANSWERS.findall(body["messages"][-1]["content"]))
    verdict = "tie" if first == second else "A" if first > second else "B"
    return json.dumps({"reasons": ["it has more vowels"], "verdict": verdict})


def trained(run: Run, url: str) -> Run:
    """The process that Ray would start, to its end."""
    Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
    variables = {"URL": url, "RUN_ID": str(run.id), "RUN_TOKEN": tokens.run_token(run)}
    environment = {f"TOUCHSTONE_{name}": value for name, value in variables.items()}
    command = [sys.executable, "-m", "trainer", "job"]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    deadline = time.monotonic() + 300
    with subprocess.Popen(command, cwd=ROOT, env=variables) as process:
        try:
            while process.poll() is None and time.monotonic() < deadline:
                answer_questions(run)
                time.sleep(0.1)
        finally:
            process.kill()
    run.refresh_from_db()
    assert run.state == "finished", run.state_reason
    return run


def answer_questions(run: Run) -> None:
    """What a worker does when questions have come."""
    waiting = RunQuestion.objects.filter(judge__run=run, state=RunQuestion.State.QUEUED)
    for judge_id in set(waiting.values_list("judge_id", flat=True)):
        asking.answer(judge_id)


@pytest.fixture
def judged(cast, settings):
    """A judge that compares, over an endpoint that needs no key."""
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.0/8"),)
    with chat_server(answer=prefers_more_vowels) as chat:
        endpoint = registry.create_endpoint(cast.researcher, "chat", name="judge", url=chat.url, model="m", retries=0)
        version = create_judge(cast.owner, name="Comparer", spec={"kind": "pairwise"}, endpoint=endpoint)
        yield version, chat


def test_what_people_preferred_becomes_a_policy_that_learns_on_from_its_own_answers(
    server,
    cast,
    judged,
    tiny_dir,  # noqa: F811
    settings,
    tmp_path,
):
    settings.VAR = tmp_path
    judge, chat = judged
    RegisteredModel.objects.create(workspace=cast.workspace, name="tiny", source="local", path=str(tiny_dir))
    project = make_project(cast, n=6, overlap=1)
    (one,) = annotators(cast, project, 1)
    for task in project.tasks.order_by("rank"):
        answer(task, one, preference(2))
    made = publish.start(cast.researcher, project, publish.Choice(what="answers", rest=False))
    assert made is not None
    data = DatasetChoice(id=made.version.dataset_id, version=made.version.number)

    config = {**SMALL, "steps": 2, "model": {"name": "tiny"}, "data": {"max_tokens": 2048}}
    first = trained(services.launch(cast.researcher, recipe="dpo", config=config, dataset=data), server.url)
    policy = RegisteredModel.objects.get(artifact__run=first)
    assert policy.base.name == "tiny"

    rewards = [{"kind": "judge", "judge": str(judge), "protocol": "pairwise", "against": "sample"}]
    config = {
        **SMALL,
        "steps": 2,
        "round_steps": 1,
        "model": {"name": policy.name},
        "rollout": {"prompts_per_round": 4, "samples": 2, "max_new_tokens": 12},
        "rewards": rewards,
    }
    second = trained(services.launch(cast.researcher, recipe="iterative_dpo", config=config, dataset=data), server.url)

    assert chat.requests > 0 and second.model == policy
    assert set(second.slots.values_list("role", flat=True)) == {"base", "judge"}
    points = dict(second.points.filter(key="label/first_share").values_list("step", "value"))
    assert set(points.values()) == {0.5}, "this judge has no order bias, in either round"
    pairs = list(Rollout.objects.filter(run=second, phase="train").order_by("step", "group", "index"))
    assert pairs and [row.index for row in pairs[:2]] == [0, 1]
    better, worse = (sum(row.content["response"].count(v) for v in "aeiou") for row in pairs[:2])
    assert better > worse
    assert RegisteredModel.objects.get(artifact__run=second).base == policy

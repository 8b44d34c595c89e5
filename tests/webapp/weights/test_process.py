"""The process that Ray starts, with a real server: its generated texts, scores and exports equal those of stock libraries, and after a kill
it continues at the same place. One test starts it like Ray; the others fork it from a process that has loaded its modules.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from django.conf import settings as django_settings

from tests import fork_server
from trainer.contracts import Criterion, Message, Response
from trainer.contracts import Example as ExampleRecord
from trainer.judges.inputs import JudgeInput
from webapp.datasets.models import DatasetVersion, Example, VersionMember
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RegisteredModel
from webapp.judging.asking.jobs import Errand, job_for
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict
from webapp.weights import services, tokens
from webapp.weights.models import WeightsJob, WeightsLogLine, WeightsResult

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def tiny(team, tiny_folder):
    return RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(tiny_folder))


@pytest.fixture
def start(live_server):
    """Starts the process of a job."""

    return lambda job: started([*fork_server.command(), "job"], job, live_server)


def as_ray_does(job: WeightsJob, live_server) -> subprocess.Popen:
    # as runs are started, because the variable says what the process is
    return started([sys.executable, "-m", "trainer", "job"], job, live_server)


def started(command: list[str], job: WeightsJob, live_server) -> subprocess.Popen:
    given = environment(job, live_server)
    return subprocess.Popen(command, cwd=django_settings.BASE_DIR, env=given, stderr=subprocess.PIPE, text=True)


def environment(job: WeightsJob, live_server) -> dict[str, str]:
    """The environment of the process. For the server, the job has been handed to Ray."""
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    return os.environ | {
        "TOUCHSTONE_URL": live_server.url,
        "TOUCHSTONE_WEIGHTS_JOB": str(job.pk),
        "TOUCHSTONE_RUN_TOKEN": tokens.token(job),
        "OMP_NUM_THREADS": "1",
    }


def finished(job: WeightsJob, process: subprocess.Popen) -> WeightsJob:
    _, said = process.communicate(timeout=240)
    job.refresh_from_db()
    assert job.state == "finished", (job.problem, said[-2000:], list(WeightsLogLine.objects.values_list("message")))
    return job


def greedy(folder, prompt: str, count: int) -> str:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    given: Any = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        model: Any = AutoModelForCausalLM.from_pretrained(folder)
        out = model.generate(**given, do_sample=False, max_new_tokens=count)
    return str(tokenizer.decode(out[0, given["input_ids"].shape[1] :], skip_special_tokens=True))


def test_generated_responses_are_those_of_stock_transformers(team, tiny, version, live_server):
    params = {"split": "", "max_new_tokens": 8}
    asked = services.generate(team.workspace, None, tiny, version, params)
    job = finished(asked, as_ray_does(asked, live_server))
    assert (job.done, job.total) == (5, 5)
    found = [row.content for row in WeightsResult.objects.order_by("place")]
    assert [content["key"] for content in found] == ["e0", "e1", "e2", "e3", "e4"]
    assert found[0]["responses"][0]["text"] == greedy(tiny.path, "Prompt 0 ü", 8)


def test_a_killed_process_goes_on_behind_its_last_result(team, tiny, version, start):
    params = {"split": "", "max_new_tokens": 200, "temperature": 1.0, "samples": 2, "sampler": {"max_batch": 2}}
    whole = services.generate(team.workspace, None, tiny, version, params | {"seed": 3})
    finished(whole, start(whole))
    expected = [row.content for row in WeightsResult.objects.filter(job=whole).order_by("place")]
    WeightsJob.objects.filter(pk=whole.pk).update(key="other")
    job = services.generate(team.workspace, None, tiny, version, params | {"seed": 3})
    process = start(job)
    deadline = time.monotonic() + 120
    while not WeightsResult.objects.filter(job=job).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    stored = WeightsResult.objects.filter(job=job).count()
    assert 0 < stored < 5
    WeightsJob.objects.filter(pk=job.pk).update(state="failed")
    job.refresh_from_db()
    again = services.retry(job, None)
    finished(again, start(again))
    assert again.attempt == 2
    assert [row.content for row in WeightsResult.objects.filter(job=job).order_by("place")] == expected


def test_a_prompt_that_does_not_fit_is_named_and_the_others_are_answered(team, tiny, version, start):
    job = services.generate(team.workspace, None, tiny, version, {"split": "", "max_new_tokens": 2040})
    finished(job, start(job))
    problems = [row.content.get("problem", "") for row in WeightsResult.objects.filter(job=job)]
    assert len(problems) == 5 and all("the model sees 2,048" in problem for problem in problems)


def test_a_model_that_cannot_be_loaded_fails_with_its_words(team, version, start, tmp_path):
    model = RegisteredModel.objects.create(
        workspace=team.workspace, name="e", source="local", path=str(tmp_path / "empty")
    )
    (tmp_path / "empty").mkdir()
    job = services.generate(team.workspace, None, model, version, {})
    start(job).communicate(timeout=240)
    job.refresh_from_db()
    assert job.state == "failed" and "no config.json" in job.problem


def test_a_killed_judge_goes_on_and_every_question_has_one_verdict(team, tiny, start):
    endpoint = endpoints.create_endpoint(team.researcher, "local", name="here", registered_model=tiny.pk)
    judge = create_judge(team.researcher, name="J", spec={"kind": "criterion"}, endpoint=endpoint)
    criteria = tuple(Criterion(id=f"c{n}", text=f"Says {n}.", points=1) for n in range(2))
    prompt = (Message(role="user", content="Which\u2028one?"),)
    given = [JudgeInput(f"e{n}", prompt, {"r": f"text {n}"}, criteria) for n in range(150)]
    errand = Errand(team.workspace, None, "a test", "J judges")
    job = job_for(judge, given, errand)
    process = start(job)
    deadline = time.monotonic() + 120
    while not Verdict.objects.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    stored = dict(Verdict.objects.values_list("key", "pk"))
    assert 0 < len(stored) < 300
    WeightsJob.objects.filter(pk=job.pk).update(state="failed")
    again = job_for(judge, given, errand, again=True)
    assert (again.pk, again.attempt, again.total) == (job.pk, 2, 300)
    done = finished(again, start(again))
    assert (done.done, done.outcome["done"], done.used["device"]) == (300, 300, "CPU")
    found = dict(Verdict.objects.values_list("key", "pk"))
    assert len(found) == 300 and stored.items() <= found.items(), "what was stored was not asked again"
    assert job_for(judge, given, errand) is None


def test_scores_are_those_of_stock_transformers(team, version, start, tiny_folder, tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tmp_path / "reward"
    torch.manual_seed(0)
    stock = AutoModelForSequenceClassification.from_pretrained(tiny_folder, num_labels=1)
    stock.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder)
    tokenizer.save_pretrained(folder)
    (folder / "reward.json").write_text(json.dumps({"offset": 0.25, "scale": 1.0, "texts": 2}))
    prompt = (Message(role="user", content="Which?"),)
    given = tuple(Response(id=name, text=text) for name, text in (("a", "red"), ("b", "a longer answer")))
    record = ExampleRecord(key="x", prompt=prompt, responses=given, split="heldout")
    row = Example.objects.create(
        dataset=version.dataset,
        key="x",
        digest="f" * 64,
        canonical=record.canonical(),
        excerpt="Which?",
        split="heldout",
        response_count=2,
    )
    version = DatasetVersion.objects.create(dataset=version.dataset, number=2, state="frozen", digest="e" * 64)
    VersionMember.objects.create(version=version, example=row, position=0)
    model = RegisteredModel.objects.create(
        workspace=team.workspace, name="r", source="local", path=str(folder), head="scalar", role="reward_model"
    )
    job = services.score(team.workspace, None, model, version, {})
    finished(job, start(job))
    (content,) = [row.content for row in WeightsResult.objects.all()]
    for response in given:
        messages = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": response.text}]
        ids: Any = tokenizer.apply_chat_template(messages, return_tensors="pt", return_dict=True)
        with torch.no_grad():
            expected = float(stock(**ids).logits[0, 0]) - 0.25
        assert content["scores"][response.id] == pytest.approx(expected, abs=1e-5)

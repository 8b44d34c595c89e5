"""A run's adapter and one of its checkpoints, downloaded over HTTP. Stock peft, without our code, gives the same answers as our code."""

import io
import json
import os
import subprocess
import sys
import tarfile

import pytest
from django.conf import settings as django_settings

from tests import fork_server
from tests.webapp.inference.serving.conftest import short_var  # noqa: F401  a fixture
from tests.webapp.inference.serving.test_serving import events
from trainer.config import resolve
from webapp.experiments.models import Artifact
from webapp.inference.models import RegisteredModel
from webapp.weights import tokens
from webapp.weights.models import WeightsJob, WeightsLogLine

from ..conftest import Trainer, make_version

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),
]
CONFIG = {"steps": 2, "checkpoint": {"every": 1, "keep": 9}, "evaluation": {"every": 0}, "batch_size": 2}
PROMPT = [{"role": "user", "content": "Prompt 1 ü"}]
STOCK = """
import importlib.util, json, sys
assert importlib.util.find_spec("trainer") is None and importlib.util.find_spec("webapp") is None
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
base, *adapters = sys.argv[1:]
found = []
for folder in adapters:
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), folder)
    tokenizer = AutoTokenizer.from_pretrained(base)
    given = tokenizer.apply_chat_template(PROMPT, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    out = model.generate(**given, do_sample=False, max_new_tokens=12)
    found.append(out[0, given["input_ids"].shape[1]:].tolist())
print(json.dumps(found))
""".replace("PROMPT", repr(PROMPT))


@pytest.fixture
def trained(team, launch, model, short_var, tmp_path_factory, settings):  # noqa: F811
    """A finished run of the tiny model. Its process used the server like all processes."""
    settings.MODEL_COMMAND = [*fork_server.command(), "model-server"]
    # imported here, because they load torch, which no other process that collects these tests needs
    from tests.trainer.loops.conftest import events_of
    from tests.trainer.running import run as train
    from trainer.inference.models import make_tiny

    base = tmp_path_factory.mktemp("tiny") / "base"
    make_tiny(base)
    RegisteredModel.objects.filter(pk=model.pk).update(path=str(base))
    version = make_version(team.owner, name="told", digest="a" * 64, reference="yes, it is")
    config = CONFIG | {"data": {"source": "references"}, "optim": {"lr": 0.01}}
    run = launch(recipe="sft", config=config, dataset=choice(version))
    folder = short_var / "runs" / str(run.pk)
    folder.mkdir(parents=True)
    lines = [member.example.canonical + "\n" for member in version.members.order_by("position")]
    (folder / "examples.jsonl").write_text("".join(lines))
    assert train(resolve("sft", run.config), folder / "examples.jsonl", base, folder)
    process = Trainer(run)
    told = [json.loads(event.model_dump_json()) for event in events_of(folder)]
    assert process.post(*told).status_code == 200
    run.refresh_from_db()
    return run, base


def choice(version):
    from webapp.experiments.launch.checks import DatasetChoice

    return DatasetChoice(id=version.dataset_id)


def exported(api, run, live_server) -> RegisteredModel:
    first = Artifact.objects.get(run=run, role="checkpoint", step=1)
    told = api.post(f"/runs/{run.pk}/artifacts/{first.pk}/export").json()
    job = WeightsJob.objects.get(pk=told["id"])
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    environment = {
        "TOUCHSTONE_URL": live_server.url,
        "TOUCHSTONE_WEIGHTS_JOB": str(job.pk),
        "TOUCHSTONE_RUN_TOKEN": tokens.token(job),
    }
    subprocess.run(
        [*fork_server.command(), "job"],
        cwd=django_settings.BASE_DIR,
        env=os.environ | environment,
        timeout=240,
        check=False,
        capture_output=True,
    )
    job.refresh_from_db()
    assert job.state == "finished", (job.problem, list(WeightsLogLine.objects.values_list("message", flat=True)))
    return RegisteredModel.objects.get(artifact__run=run, artifact__step=1)


def taken_home(api, model, folder) -> str:
    answer = api.get(f"/models/{model.pk}/download")
    assert answer.status_code == 200
    with tarfile.open(fileobj=io.BytesIO(b"".join(answer))) as tar:
        tar.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return str(found)


def test_the_adapter_and_a_checkpoint_speak_at_home_as_they_do_here(trained, api, live_server, tmp_path):
    run, base = trained
    left = RegisteredModel.objects.get(artifact__run=run)
    models = [left, exported(api, run, live_server)]
    assert models[1].name == f"{run.experiment.name}-run-1-step-1"
    folders = []
    for number, model in enumerate(models):
        (tmp_path / str(number)).mkdir()
        folders.append(taken_home(api, model, tmp_path / str(number)))
    # with -I, Python looks neither in this folder nor in PYTHONPATH
    command = [sys.executable, "-I", "-c", STOCK, str(base), *folders]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    stock = json.loads(done.stdout.splitlines()[-1])
    assert stock[0] != stock[1], "one more update says something else"
    for model, said in zip(models, stock, strict=True):
        ours = events(api.post(f"/models/{model.pk}/generate", {"messages": PROMPT, "max_new_tokens": 12}))
        assert ours[-1][1]["tokens"] == said

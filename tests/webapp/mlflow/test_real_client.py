"""MLflow's own client, and the callback of transformers, in separate processes. They log to Touchstone because of MLFLOW_TRACKING_URI
alone. The processes are forked from one that has loaded these libraries, because loading them takes up to ten processor seconds.
"""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests import client_packages, fork_server
from tests.e2e.live import server  # noqa: F401
from tests.team import browser, make_team
from webapp.accounts.tokens.services import create_token
from webapp.experiments.models import Artifact, Point, Run
from webapp.tracking.models import LoggedRun, SavedMetric, SavedModel

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PROGRAM, LOADED = "tests.webapp.mlflow.program", ("tests.webapp.mlflow.preloaded",)

LOGS = """
    import math, os, tempfile, time
    import mlflow
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    mlflow.set_experiment("from outside")
    with mlflow.start_run(run_name="tiny", tags={"team": "red"}) as run:
        mlflow.log_params({"lr": 1e-4, "layers": 2})
        for step in range(5):
            mlflow.log_metrics({"loss": 2.0 - step / 4, "eval/score": step / 5}, step=step)
        mlflow.log_metric("odd", math.nan, step=1)
        mlflow.log_metric("big", math.inf, step=1)
        mlflow.log_metrics({f"k{n}": n / 7 for n in range(1000)}, step=0)
        mlflow.log_text("hello", "notes/a.txt")
        mlflow.log_text("42", "confusion matrix (é) 100%.txt")
        with tempfile.TemporaryDirectory() as folder:
            open(f"{folder}/b.bin", "wb").write(bytes(range(256)) * 100)
            mlflow.log_artifacts(folder, "weights")
        try:
            mlflow.log_param("lr", 5)
            raise SystemExit("a param changed")
        except MlflowException as error:
            assert error.error_code == "INVALID_PARAMETER_VALUE", error
    client, key = MlflowClient(), run.info.run_id
    told = client.get_run(key)
    assert told.info.status == "FINISHED" and told.info.run_name == "tiny" and told.data.params["layers"] == "2"
    assert told.data.metrics["loss"] == 1.0 and math.isnan(told.data.metrics["odd"]) and told.data.metrics["big"] == math.inf
    assert [each.step for each in client.get_metric_history(key, "loss")] == [0, 1, 2, 3, 4]
    assert sorted(each.path for each in client.list_artifacts(key)) == ["confusion matrix (é) 100%.txt", "notes", "weights"]
    assert mlflow.artifacts.load_text(f"mlflow-artifacts:/{told.info.experiment_id}/{key}/artifacts/confusion matrix (é) 100%.txt") == "42"
    assert [each.path for each in client.list_artifacts(key, "weights")] == ["weights/b.bin"]
    assert mlflow.artifacts.load_text(f"runs:/{key}/notes/a.txt") == "hello"
    fetched = mlflow.artifacts.download_artifacts(run_id=key, artifact_path="weights/b.bin")
    assert open(fetched, "rb").read() == bytes(range(256)) * 100
    with mlflow.start_run(run_id=key):
        mlflow.log_metric("loss", 0.5, step=5)
    found = mlflow.search_runs(experiment_names=["from outside"], filter_string="metrics.loss < 1", output_format="list")
    assert [each.info.run_id for each in found] == [key]
    client.set_tag(key, "note", "kept"), client.delete_tag(key, "team")
    client.delete_run(key)
    assert client.get_run(key).info.lifecycle_stage == "deleted"
    client.restore_run(key)
    for unknown in (lambda: client.get_experiment("999999"), lambda: client.get_run("0" * 32)):
        try:
            unknown()
            raise SystemExit("found what is not there")
        except MlflowException as error:
            assert error.error_code == "RESOURCE_DOES_NOT_EXIST", error
    os.environ["MLFLOW_TRACKING_TOKEN"] = "ts_wrong"
    try:
        client.get_run(key)
        raise SystemExit("a wrong token opened")
    except MlflowException as error:
        assert error.error_code == "UNAUTHENTICATED", error
"""

MODELS = """
    import os, pickle
    import mlflow, torch
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from mlflow.store.artifact.runs_artifact_repo import RunsArtifactRepository
    from transformers import GPT2Config, GPT2LMHeadModel

    KIND = {"serialization_format": "pickle", "pip_requirements": []}
    client = MlflowClient()
    mlflow.set_experiment("models")
    with mlflow.start_run() as run:
        GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=8, n_layer=1, n_head=1)).save_pretrained("saved")
        mlflow.log_artifacts("saved", "saved")
        logged = mlflow.pytorch.log_model(torch.nn.Linear(2, 1), name="net", registered_model_name="nets", **KIND)
    assert client.get_model_version("nets", 1).source == f"models:/{logged.model_id}"
    told = client.get_logged_model(logged.model_id)
    assert str(told.status) == "READY" and told.name == "net" and told.source_run_id == run.info.run_id, told
    assert [each.model_id for each in client.get_run(run.info.run_id).outputs.model_outputs] == [logged.model_id]
    again = mlflow.pytorch.load_model(f"models:/{logged.model_id}")  # loaded by the client, which wrote it
    assert again(torch.zeros(1, 2)).shape == (1, 1)
    fetched = mlflow.artifacts.download_artifacts(f"models:/nets/1")
    assert "MLmodel" in os.listdir(fetched)
    listed = RunsArtifactRepository(f"runs:/{run.info.run_id}/net").list_artifacts()
    assert "net/MLmodel" in [each.path for each in listed], listed
    second = mlflow.register_model(f"runs:/{run.info.run_id}/net", "nets")
    assert str(second.version) == "2"
    client.set_registered_model_alias("nets", "best", 2)
    assert str(client.get_model_version_by_alias("nets", "best").version) == "2"
    assert mlflow.artifacts.download_artifacts("models:/nets@best")
    third = client.create_model_version("nets", f"runs:/{run.info.run_id}/saved", run.info.run_id, description="the whole")
    client.update_model_version("nets", third.version, "better")
    client.set_model_version_tag("nets", third.version, "checked", "yes")
    assert client.get_model_version("nets", third.version).tags["checked"] == "yes"
    assert len(client.search_model_versions("name = 'nets'")) == 3
    assert [each.name for each in client.search_registered_models()] == ["nets"]
    client.update_registered_model("nets", "small ones")
    assert client.get_registered_model("nets").description == "small ones"
    assert [each.name for each in mlflow.search_logged_models(output_format="list")] == ["net"]
    client.delete_model_version("nets", third.version)
    client.rename_registered_model("nets", "networks")
    client.delete_registered_model("networks")
    try:
        client.create_model_version("nothing", "s3://elsewhere/model")
        raise SystemExit("a model that is not there got a version")
    except MlflowException as error:
        assert error.error_code == "RESOURCE_DOES_NOT_EXIST", error
    alone = mlflow.pytorch.log_model(torch.nn.Linear(2, 1), name="alone", **KIND)
    assert client.get_logged_model(alone.model_id).name == "alone"
"""

MEASURES = """
    import mlflow, pandas, torch

    KIND = {"serialization_format": "pickle", "pip_requirements": []}
    mlflow.set_experiment("checkpoints")
    data = mlflow.data.from_pandas(pandas.DataFrame({"x": [1.0, 2.0]}), name="held out")
    with mlflow.start_run() as run:
        made = [mlflow.pytorch.log_model(torch.nn.Linear(2, 1), name=f"at-{step}", step=step, **KIND) for step in range(3)]
        for step, each in enumerate(made):
            mlflow.log_metric("accuracy", step / 4, step=step, model_id=each.model_id, dataset=data)
            mlflow.log_metrics({"loss": 1.0 - step / 4}, step=step, model_id=each.model_id)
    told = mlflow.get_logged_model(made[1].model_id)
    assert {(each.key, each.value, each.dataset_name, each.run_id) for each in told.metrics} == {
        ("accuracy", 0.25, "held out", run.info.run_id), ("loss", 0.75, None, run.info.run_id)}, told.metrics
    [best] = mlflow.search_logged_models(
        filter_string="metrics.accuracy > 0.1", datasets=[{"dataset_name": "held out", "dataset_digest": data.digest}],
        order_by=[{"field_name": "metrics.accuracy", "ascending": False, "dataset_name": "held out"}], max_results=1,
        output_format="list")
    assert best.model_id == made[2].model_id
    mlflow.set_active_model(name="the app")  # from now on, its metrics are those of this model
    with mlflow.start_run():
        mlflow.log_metric("latency", 0.5)
    assert [each.value for each in mlflow.get_logged_model(mlflow.get_active_model_id()).metrics] == [0.5]
    found = mlflow.search_logged_models(filter_string="metrics.latency < 1")
    assert list(found["name"]) == ["the app"], found
"""

TRAINS = """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=8, n_layer=1, n_head=1))
    rows = [{"input_ids": torch.arange(8) % 32, "labels": torch.arange(8) % 32} for _ in range(8)]
    settings = TrainingArguments("out", max_steps=4, logging_steps=1, per_device_train_batch_size=2, report_to=["mlflow"],
                                 save_strategy="no", use_cpu=True, run_name="by transformers")
    Trainer(model, settings, train_dataset=rows).train()
"""


# of the packages of other trainers, a test loads the module that logs: the whole package asks for a cluster or for cards
LOADS = """
    import importlib.util, sys, types

    def load(folder, name):
        sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location(name.replace("/", "_"), f"{folder}/{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
"""
VERL_LOGS = """
    module = load(FOLDER, "verl/utils/tracking")
    config = {"actor": {"lr": 1e-6, "betas": [0.9, 0.95], "path": None}, "more": {f"key{n}": n for n in range(250)}}
    tracking = module.Tracking("by verl", "first run", default_backend=["mlflow"], config=config)
    for step in range(1, 4):
        values = {"critic/score/mean": step / 4, "val-core/gsm8k/reward/mean@8": 0.5, "perf//tokens": 10.0, "actor/kl (k3)": 0.25}
        tracking.log(data=values, step=step)
    samples = [("What is 1 + 1?", "2", 1.0), ("Say 你好", "你好", 0.0)]
    module.ValidationGenerationsLogger("by verl", "first run").log(["mlflow"], samples, 3)
    tracking.finish()
"""
AXOLOTL_TRAINS = """
    import os

    logging, distributed = types.ModuleType("axolotl.utils.logging"), types.ModuleType("axolotl.utils.distributed")
    logging.get_logger, distributed.is_main_process = __import__("logging").getLogger, lambda: True
    sys.modules |= {"axolotl.utils.logging": logging, "axolotl.utils.distributed": distributed}
    dictionaries = types.ModuleType("axolotl.utils.dict")
    class DictDefault(dict):
        def __getattr__(self, name):
            return self.get(name)
    dictionaries.DictDefault = DictDefault
    sys.modules["axolotl.utils.dict"] = dictionaries
    chosen = DictDefault(mlflow_experiment_name="by axolotl", mlflow_run_name="tuned", hf_mlflow_log_artifacts=True)
    load(FOLDER, "axolotl/utils/mlflow_").setup_mlflow_env_vars(chosen)
    assert chosen.use_mlflow and os.environ["MLFLOW_EXPERIMENT_NAME"] == "by axolotl"
    saves = load(FOLDER, "axolotl/utils/callbacks/mlflow_").SaveAxolotlConfigtoMlflowCallback
    open("tuned.yml", "w").write("base_model: tiny\\n")

    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=8, n_layer=1, n_head=1))
    rows = [{"input_ids": torch.arange(8) % 32, "labels": torch.arange(8) % 32} for _ in range(4)]
    settings = TrainingArguments("out", max_steps=2, logging_steps=1, per_device_train_batch_size=2, report_to=["mlflow"],
                                 save_strategy="steps", save_steps=2, use_cpu=True, run_name=chosen.mlflow_run_name)
    Trainer(model, settings, train_dataset=rows, callbacks=[saves("tuned.yml")]).train()
"""


@pytest.fixture
def program(server, tmp_path):  # noqa: F811
    """`program(text, membership)` starts a program with an address and a token, and without our code."""

    packages = str(client_packages.folder(client_packages.MLFLOW))
    # read while the libraries are loaded
    quick = {
        "PYTHONPATH": packages,
        "HF_HUB_OFFLINE": "1",
        "GIT_PYTHON_REFRESH": "quiet",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    command = fork_server.command(PROGRAM, LOADED, **quick)

    def start(text: str, membership) -> subprocess.Popen:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DJANGO", "DATABASE", "TOUCHSTONE"))
        }
        secret = create_token(membership, "program")[1]
        told = {
            "MLFLOW_TRACKING_URI": f"{server.url}/mlflow",
            "MLFLOW_TRACKING_TOKEN": secret,
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
            "HOME": str(tmp_path),
        }
        script = Path(tmp_path) / "program.py"
        script.write_text(textwrap.dedent(text))
        return subprocess.Popen(
            [*command, str(script)], cwd=tmp_path, env=kept | quick | told, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )  # fmt: skip

    return start


def ended(process: subprocess.Popen) -> None:
    said, _ = process.communicate(timeout=500)
    assert process.returncode == 0, said[-4_000:]


def test_its_client_logs_reads_and_finds(program, tmp_path, settings):
    settings.VAR = tmp_path / "var"
    team = make_team()
    ended(program(LOGS, team.researcher))
    run = Run.objects.get()
    assert (run.state, run.step, str(run), run.config) == ("finished", 5, "tiny", {"lr": "0.0001", "layers": "2"})
    assert LoggedRun.objects.get().tags["note"] == "kept"
    assert Point.objects.filter(run=run).count() == 6 + 5 + 1 + 1 + 1_000
    assert set(Artifact.objects.values_list("path", flat=True)) == {
        "files/notes/a.txt",
        "files/weights/b.bin",
        "files/confusion matrix (é) 100%.txt",
    }
    page = browser(team.reviewer).get(f"/runs/{run.pk}/lineage").content.decode()
    assert "files/notes/a.txt" in page and "through MLflow" in page


def test_its_client_logs_and_registers_models(program, tmp_path, settings):
    settings.VAR = tmp_path / "var"
    team = make_team()
    ended(program(MODELS, team.researcher))
    saved = {each.name: each for each in SavedModel.objects.all()}
    assert saved.keys() == {"net", "alone"} and {each.state for each in saved.values()} == {"ready"}
    paths = set(Artifact.objects.values_list("path", flat=True))
    assert {"files/saved/model.safetensors", f"files/{saved['net'].folder}/MLmodel"} <= paths


def test_its_client_logs_metrics_of_models_and_finds_the_best(program, tmp_path, settings):
    settings.VAR = tmp_path / "var"
    team = make_team()
    ended(program(MEASURES, team.researcher))
    assert SavedMetric.objects.count() == 7
    run = Run.objects.get(experiment__name="checkpoints", summary__has_key="accuracy")
    assert list(Point.objects.filter(run=run, key="loss").order_by("step").values_list("value", flat=True)) == [
        1.0,
        0.75,
        0.5,
    ]


def test_two_programs_log_to_one_run_at_once(program):
    team = make_team()
    log = """
        import mlflow
        with mlflow.start_run(STARTED) as run:
            print(run.info.run_id, flush=True)
            input()  # until both have begun
            for step in range(20):
                mlflow.log_metrics({name: float(step) for name in NAMES}, step=step)
    """
    both, started = [], 'run_name="shared"'
    for order in (range(8), reversed(range(8))):
        text = log.replace("STARTED", started).replace("NAMES", str([f"m{n}" for n in order]))
        both.append(program(text, team.researcher))
        started = f'run_id="{both[-1].stdout.readline().strip()}"'
    for each in both:
        each.stdin.write("\n")
        each.stdin.flush()
    for each in both:
        ended(each)
    assert Point.objects.count() == 8 * 20


def test_a_trainer_of_transformers_logs_by_the_address_alone(program):
    team = make_team()
    ended(program(TRAINS, team.researcher))
    run = Run.objects.get()
    assert (run.state, str(run), run.experiment.name) == ("finished", "by transformers", "Default")
    assert run.config["max_steps"] == "4" and run.summary["train_loss"] > 0
    assert Point.objects.filter(run=run, key="loss").count() == 4


def loading(pins: tuple[str, ...], text: str) -> str:
    """The text of a program that can load modules of these packages."""
    folder = f"FOLDER = {str(client_packages.folder(pins))!r}\n"
    return folder + textwrap.dedent(LOADS) + textwrap.dedent(text)


def test_verl_logs_by_the_address_alone(program):
    """Its tracker with its whole config, names of metrics that the protocol does not know, and its table of validation samples."""
    team = make_team()
    ended(program(loading(client_packages.VERL, VERL_LOGS), team.researcher))
    run = Run.objects.get()
    assert (run.state, str(run), run.experiment.name) == ("finished", "first run", "by verl")
    assert run.config["actor/lr"] == "1e-06" and run.config["more/key249"] == "249"
    assert run.config["actor/betas/list_len"] == "2"
    keys = {"critic/score/mean", "val-core/gsm8k/reward/mean_at_8", "perf/tokens", "actor/kl _k3_"}
    assert set(Point.objects.filter(run=run).values_list("key", flat=True)) == keys
    assert list(
        Point.objects.filter(run=run, key="critic/score/mean").order_by("step").values_list("value", flat=True)
    ) == [
        0.25,
        0.5,
        0.75,
    ]
    assert Artifact.objects.get(run=run).path == "files/val_step3.json"


def test_axolotl_logs_by_its_config_and_the_address(program):
    """Its settings of the experiment, its callback that keeps the config, and the trainer of transformers with its checkpoints."""
    team = make_team()
    ended(program(loading(client_packages.AXOLOTL, AXOLOTL_TRAINS), team.researcher))
    run = Run.objects.get()
    assert (run.state, str(run), run.experiment.name) == ("finished", "tuned", "by axolotl")
    assert Point.objects.filter(run=run, key="loss").count() == 2 and run.config["max_steps"] == "2"
    paths = list(Artifact.objects.filter(run=run).values_list("path", flat=True))
    assert any(path.startswith("files/axolotl_config_") for path in paths), paths
    assert any("checkpoint-2/" in path for path in paths), paths

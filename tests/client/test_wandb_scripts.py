"""Calls that training scripts make of W&B: what is here does what they expect, and what is not here says so once and ends no program."""

import argparse
import json
import logging
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import touchstone.wandb as wandb
import yaml
from touchstone.spool import Background, send_kept

from tests import fork_server
from webapp.experiments.models import Artifact, Point, Run
from webapp.tracking.models import LoggedRun

from .test_wandb import begun, ended, send_spool  # noqa: F401 - fixtures

pytestmark = pytest.mark.django_db


def test_a_script_with_parts_that_are_not_here_is_told_of_each_once(begun, remote, caplog):  # noqa: F811
    caplog.set_level(logging.WARNING, "touchstone.wandb")
    run = begun(
        entity="me", sync_tensorboard=True, settings=wandb.Settings(silent=True), save_code=True, dir="/nowhere"
    )
    wandb.watch(object(), log="all")
    run.define_metric("eval/*", step_metric="epoch")
    wandb.define_metric("eval/*", step_metric="epoch")
    for step in range(3):
        picture = wandb.Image(np.zeros((2, 2, 3)), caption="x")
        assert isinstance(picture, wandb.Image) and not isinstance(picture, wandb.data_types.Video)
        curve = wandb.plot.line(wandb.Table(columns=["x", "y"]), "x", "y", title="t")
        wandb.log({"loss": float(step), "picture": picture, "pictures": [picture], "curve": curve, "none": None})
    wandb.log({"loss": 9.0}, sync=True)
    run.log_code(".")
    wandb.unwatch(), wandb.termlog("a"), wandb.setup(), wandb.util.generate_id(), run.mark_preempting()
    run.finish(quiet=True)
    assert send_spool(run, remote).refused == []
    assert [row.value for row in Point.objects.filter(key="loss").order_by("step")] == [0, 1, 2, 9]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == len(set(said)), said
    for part in (
        "sync_tensorboard",
        "gradients",
        "epoch",
        "wandb.Image",
        "pictures is not logged",
        "wandb.plot.line",
        "run.log_code",
    ):
        assert any(part in each for each in said), (part, said)
    assert not any("none" in each for each in said)


def test_other_packages_find_the_modules_of_wandb_while_this_one_stands_in_its_place(begun, monkeypatch):  # noqa: F811
    """The imports and calls of the callback of transformers 5.19, besides those of a script."""
    with pytest.raises(ModuleNotFoundError):
        import_module("wandb.sdk.lib.config_util")
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    made = (
        "wandb.sdk",
        "wandb.sdk.lib",
        "wandb.sdk.lib.config_util",
        "wandb.errors",
        "wandb.data_types",
        "wandb.apis",
        "wandb.apis.public",
    )
    for name in made:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("sdk", "errors", "data_types", "apis"):  # an import sets them
        monkeypatch.setitem(vars(wandb), name, vars(wandb).get(name))
    config_util = import_module("wandb.sdk.lib.config_util")
    assert issubclass(config_util.ConfigError, Exception)
    assert import_module("wandb.errors").CommError is wandb.Error
    assert import_module("wandb.data_types").Table is wandb.Table
    assert import_module("wandb.sdk").wandb_run is not None and not hasattr(config_util, "__wrapped__")
    public = import_module("wandb.apis.public")
    assert isinstance(public.Api, type) and isinstance(wandb.Api, type), "a package may import what it never calls"
    assert public.Reports() is not None
    with pytest.raises(wandb.Error, match=r"touchstone has no wandb\.apis\.public\.Api"):
        public.Api()
    begun()._label(code="transformers_trainer")
    for name in made:
        del sys.modules[name]


TRAINS = """
import os, sys
sys.path.insert(0, os.environ["PYTHONPATH"])
import touchstone.wandb as wandb
sys.modules["wandb"] = wandb
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

shape = LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
told = TrainingArguments("out", report_to=["wandb"], run_name="tiny", logging_steps=1, max_steps=3, eval_strategy="steps", eval_steps=3, use_cpu=True)
trainer = Trainer(LlamaForCausalLM(shape), told, train_dataset=rows, eval_dataset=rows)
trainer.train()
assert wandb.run.name == "tiny"
"""


@pytest.mark.slow
def test_a_trainer_of_transformers_logs_while_this_one_stands_in_its_place(remote, tmp_path, settings):
    """TRL uses the same callback."""
    settings.VAR = tmp_path / "var"
    told = {
        "WANDB_MODE": "offline",
        "WANDB_LOG_MODEL": "end",
        "WANDB_WATCH": "all",
        "TOUCHSTONE_SPOOL": str(tmp_path / "spool"),
    }
    quick = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    environment = os.environ | told | quick | {"PYTHONPATH": str(Path("client").resolve())}
    (tmp_path / "program.py").write_text(TRAINS)
    command = [*fork_server.command("tests.webapp.mlflow.program"), "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-4_000:]
    assert [(left, refused) for _, left, refused in send_kept(remote)] == [(0, [])]
    run = Run.objects.get()
    assert (run.state, str(run), run.experiment.name) == ("finished", "tiny", "huggingface")
    assert Point.objects.filter(key="train/loss").count() == 3 and Point.objects.filter(key="eval/loss").count() == 1
    assert Point.objects.filter(key="train_loss").count() == 1
    assert Artifact.objects.filter(path__startswith="files/artifacts/model-tiny/").exists()


def test_what_a_script_cannot_go_on_without_is_an_error(begun):  # noqa: F811
    run = begun()
    for call in (
        lambda: wandb.Api(),
        lambda: run.use_artifact("model:latest"),
        lambda: wandb.sweep({}),
        lambda: wandb.restore("x"),
    ):
        with pytest.raises(wandb.Error, match="touchstone has no"):
            call()
    assert not hasattr(wandb, "__wrapped__") and wandb.errors.CommError is wandb.Error


def test_a_run_tells_a_script_about_itself(begun):  # noqa: F811
    run = begun(name="one", entity="me", group="seeds", job_type="train", notes="n", tags=["a"], id="told")
    assert (run.id, run.name, run.project, run.entity, run.group, run.job_type, run.notes) == (
        "told",
        "one",
        "shim",
        "me",
        "seeds",
        "train",
        "n",
    )
    assert (run.path, run.offline, run.disabled, run.resumed, run.sweep_id, run.step) == (
        "me/shim/told",
        True,
        False,
        False,
        None,
        0,
    )
    assert run.url is None, "nothing is sent"
    run.tags += ("b",)
    assert run.tags == ("a", "b")


def test_the_page_of_a_run_is_where_the_server_says(remote, monkeypatch):
    monkeypatch.setattr(Background, "start", lambda self: None)  # it shares the transaction of this test
    monkeypatch.setattr(Background, "is_alive", lambda self: True)
    monkeypatch.setattr(Background, "join", lambda self, within: None)
    run = wandb.init(project="online", server=remote)
    run._sender.send()
    assert run.url == run.get_url() == f"http://touchstone.test/mlflow/runs/{LoggedRun.objects.get().key}"
    monkeypatch.setattr(Background, "is_alive", lambda self: False)
    run.finish()
    assert Run.objects.get().state == "finished"


def test_a_config_comes_as_arguments_or_as_a_file(begun, remote, tmp_path):  # noqa: F811
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"wandb_version": 1, "lr": {"value": 3}, "plain": 4}))
    run = begun(config=str(tmp_path / "config.yaml"), config_exclude_keys=["plain"])
    wandb.config.update(argparse.Namespace(batch=8))
    wandb.config.epochs = 2
    assert wandb.config.as_dict() == {"lr": 3, "batch": 8, "epochs": 2}
    run.finish()
    send_spool(run, remote)
    assert Run.objects.get().config == {"lr": "3", "batch": "8", "epochs": "2"}


def test_artifacts_and_saved_files_are_files_of_the_run(begun, remote, tmp_path, settings, monkeypatch, caplog):  # noqa: F811
    settings.VAR = tmp_path / "var"
    work = tmp_path / "work"
    (work / "out" / "deep").mkdir(parents=True)
    (work / "model.bin").write_bytes(b"m")
    (work / "out" / "deep" / "eval log.txt").write_text("e")
    monkeypatch.chdir(work)
    run = begun()
    artifact = wandb.Artifact("final", type="model", metadata={"steps": 3})
    artifact.add_file("model.bin")
    artifact.add_dir("out", name="logs")
    artifact.add(wandb.Table(columns=["a"], data=[[1]]), "rows")
    with artifact.new_file("note.txt") as out:
        out.write("hello")
    assert run.log_artifact(artifact, aliases=["best"]).wait() is artifact
    wandb.log_artifact("out", name="folder", type="logs")
    run.log_model("model.bin")
    assert wandb.save("out/**/*.txt", base_path="out") and wandb.save("*.missing") == []
    table = wandb.Table(columns=["a"], data=[[1], [2]])
    table.add_column("b", ["x", "y"])
    wandb.log({"eval/100% of my samples #2?": table})
    run.finish()
    assert send_spool(run, remote).refused == []
    assert set(Artifact.objects.values_list("path", flat=True)) == {
        f"files/{path}"
        for path in (
            "artifacts/final/model.bin", "artifacts/final/logs/deep/eval log.txt", "artifacts/final/rows.table.json",
            "artifacts/final/note.txt", "artifacts/folder/deep/eval log.txt", "artifacts/model.bin/model.bin", "deep/eval log.txt",
            "tables/eval/100% of my samples #2?-0.table.json",
        )
    }  # fmt: skip
    told = json.loads(LoggedRun.objects.get().tags["artifact.final"])
    assert told == {"type": "model", "aliases": ["best"], "metadata": {"steps": 3}}
    assert "there is none at *.missing" in caplog.text

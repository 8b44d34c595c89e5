"""Trainers of other libraries log to Touchstone by MLFLOW_TRACKING_URI alone: those of transformers and TRL themselves, in separate
processes. Each takes some seconds to load its libraries, so the test of transformers' trainer is also that of axolotl.

verl and axolotl need GPUs. For each of them, a program makes the calls of MLflow's client that its tracker makes, with the same kinds of
names and values: verl's `Tracking` sets an experiment, logs its whole nested config with slashes in the names, and one dictionary of
metrics a step, with `@` written as `_at_`. axolotl trains with transformers' callback and adds its config as a file.
"""

import json

import pytest

from tests.cast import Cast, make_cast
from tests.e2e.live import server  # noqa: F401 - a fixture
from webapp.experiments.models import Artifact, Point, Run

from .programs import ended, program  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TRANSFORMERS = """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=8, n_layer=1, n_head=1))
    rows = [{"input_ids": torch.arange(8) % 32, "labels": torch.arange(8) % 32} for _ in range(8)]
    settings = TrainingArguments("out", max_steps=4, logging_steps=1, per_device_train_batch_size=2, report_to=["mlflow"],
                                 save_strategy="no", use_cpu=True, run_name=NAME)
    Trainer(model, settings, train_dataset=rows, callbacks=[SavesConfig()]).train()
"""

TRL = """
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer

    words = ["<pad>", "<eos>", " ", *"abcdefghijklmnopqrstuvwxyz"]
    letters = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<pad>"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, pad_token="<pad>", eos_token="<eos>")
    sizes = dict(n_positions=64, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1, pad_token_id=0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(words), **sizes))
    common = dict(output_dir="out", max_steps=2, logging_steps=1, per_device_train_batch_size=2, report_to=["mlflow"],
                  save_strategy="no", use_cpu=True, bf16=False, run_name=NAME)
"""
GRPO = """
    def vowels(completions, **_):
        return [float(sum(letter in "aeiou" for letter in each)) for each in completions]

    settings = GRPOConfig(**common, num_generations=2, max_completion_length=4)
    rows = Dataset.from_list([{"prompt": word} for word in ("one", "two", "three", "four")])
    GRPOTrainer(model, vowels, args=settings, train_dataset=rows, processing_class=tokenizer).train()
"""
DPO = """
    rows = Dataset.from_list([{"prompt": "say ", "chosen": "yes", "rejected": "no"}] * 4)
    model.save_pretrained("tiny")  # its reference is read again
    DPOTrainer("tiny", args=DPOConfig(**common), train_dataset=rows, processing_class=tokenizer).train()
"""

AS_VERL = """
    import json, os, tempfile
    from pathlib import Path
    import mlflow
    import numpy as np

    config = {"trainer/project_name": "verl_grpo_example_gsm8k", "trainer/logger/list_len": 2, "trainer/logger/0": "console",
              "trainer/logger/1": "mlflow", "actor_rollout_ref/actor/optim/lr": 1e-06, "actor_rollout_ref/model/override_config": {},
              "actor_rollout_ref/rollout/val_kwargs/top_p": 1.0, "data/val_files": None, "reward_model/enable": False}
    config |= {f"actor_rollout_ref/ref/fsdp_config/field_{n}": n for n in range(300)}
    mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
    experiment = mlflow.set_experiment("verl_grpo_example_gsm8k")
    mlflow.start_run(experiment_id=experiment.experiment_id, run_name="qwen2_5_function_rm")
    mlflow.log_params(config)
    for step in range(3):
        data = {"val-core/openai/gsm8k/reward/mean@4": np.float64(step / 4), "val-aux/openai/gsm8k/score/best@4/std": 0.1,
                "actor/pg_loss": np.float32(0.5), "actor/lr": 1e-06, "critic/score/max": 1, "response_length/clip_ratio": 0.0,
                "timing_s/step": 12.5, "timing_per_token_ms/gen": 0.02, "perf/mfu/actor": 0.31, "training/global_step": step}
        mlflow.log_metrics(metrics={name.replace("@", "_at_"): value for name, value in data.items()}, step=step)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "val_step2.json")
        file.write_text(json.dumps([{"input": "1+1", "output": "2", "score": 1.0}]))
        mlflow.log_artifact(file)
"""

AXOLOTL = """
    import shutil, tempfile
    import mlflow

    class SavesConfig(TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            with tempfile.NamedTemporaryFile(mode="w", delete=False, suffix=".yml", prefix="axolotl_config_") as copy:
                shutil.copyfile("config.yml", copy.name)
                mlflow.log_artifact(copy.name, artifact_path="")
            return control

    open("config.yml", "w").write("base_model: tiny\\nmlflow_experiment_name: sums\\n")
"""


def written(text: str, name: str) -> str:
    return text.replace("NAME", repr(name))


@pytest.fixture
def cast(server) -> Cast:  # noqa: F811
    return make_cast()


def steps(run: Run, key: str) -> list[int]:
    return list(Point.objects.filter(run=run, key=key).order_by("step").values_list("step", flat=True))


def test_the_policy_trainer_of_trl(program, cast):  # noqa: F811
    ended(program(written(TRL + GRPO, "by GRPO"), cast.researcher, MLFLOW_EXPERIMENT_NAME="vowels"))
    run = Run.objects.get()
    assert (run.state, str(run), run.experiment.name) == ("finished", "by GRPO", "vowels")
    assert run.config["num_generations"] == "2" and run.config["max_steps"] == "2"
    for key in ("reward", "rewards/vowels/mean", "completions/mean_length", "grad_norm"):
        assert steps(run, key) == [1, 2], key
    taken = "profiling/Time taken: GRPOTrainer._prepare_inputs"
    assert len(steps(run, taken)) == 2, "TRL times its own work, by another way than its callback"


def test_the_preference_trainer_of_trl(program, cast):  # noqa: F811
    ended(program(written(TRL + DPO, "by DPO"), cast.researcher))
    run = Run.objects.get()
    assert (run.state, str(run)) == ("finished", "by DPO") and run.config["beta"] == "0.1"
    assert steps(run, "loss") == [1, 2] == steps(run, "rewards/margins") and 0 <= run.summary["rewards/accuracies"] <= 1


def test_what_verl_sends(program, cast, settings, tmp_path):  # noqa: F811
    settings.VAR = tmp_path / "var"
    ended(program(AS_VERL, cast.researcher))
    run = Run.objects.get()
    assert (run.state, str(run), run.experiment.name) == ("finished", "qwen2_5_function_rm", "verl_grpo_example_gsm8k")
    assert len(run.config) == 309 and run.config["actor_rollout_ref/actor/optim/lr"] == "1e-06"
    assert run.summary["val-core/openai/gsm8k/reward/mean_at_4"] == 0.5
    assert steps(run, "timing_per_token_ms/gen") == [0, 1, 2] == steps(run, "val-aux/openai/gsm8k/score/best_at_4/std")
    file = tmp_path / "var" / "runs" / str(run.pk) / Artifact.objects.get().path
    assert file.name == "val_step2.json" and json.loads(file.read_text())[0]["score"] == 1.0


def test_the_trainer_of_transformers_and_the_file_that_axolotl_adds(program, cast, settings, tmp_path):  # noqa: F811
    settings.VAR = tmp_path / "var"
    imports, rest = TRANSFORMERS.split("\n\n", 1)
    text = written(f"{imports}\n{AXOLOTL}\n{rest}", "tiny sft")
    names = {"MLFLOW_EXPERIMENT_NAME": "sums", "HF_MLFLOW_LOG_ARTIFACTS": "true"}
    ended(program(text, cast.researcher, **names))
    run = Run.objects.get()
    assert (run.state, str(run), run.experiment.name) == ("finished", "tiny sft", "sums")
    assert run.config["max_steps"] == "4" and run.summary["train_loss"] > 0
    assert steps(run, "loss") == [1, 2, 3, 4]
    file = tmp_path / "var" / "runs" / str(run.pk) / Artifact.objects.get().path
    assert file.name.startswith("axolotl_config_") and "base_model: tiny" in file.read_text()

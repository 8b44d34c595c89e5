"""A checkpoint of any recipe, exported by a job. Stock transformers and peft load it and give the answers or scores of the run's own model."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.running import run
from tests.trainer.weights.test_export import OFTEN, Client
from trainer.config import resolve
from trainer.contracts import Example, Message, Preference, Response
from trainer.inference.models import load_tokenizer
from trainer.weights import export

FAST: dict[str, Any] = {**OFTEN, "optim": {"lr": 5e-3}}
LETTERS = [{"kind": "format", "name": "letters", "form": "pattern", "pattern": "[^a-m]*"}]
SAMPLED: dict[str, Any] = {key: value for key, value in FAST.items() if key != "batch_size"}
CONFIGS: dict[str, dict[str, Any]] = {
    "dpo": FAST,
    "reward_model": FAST,
    "policy": {
        **SAMPLED,
        "rewards": LETTERS,
        "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8},
    },
}
PROMPTS = [[Message(role="user", content=f"Say something about {number}.")] for number in range(3)]
ANSWERS = ["yes, it is", "no"]


@pytest.fixture
def exported(examples: list[Example], tmp_path: Path, tiny_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`exported(recipe, lora)`: the folder of the exported checkpoint of step 1, and the stage that made the checkpoint."""
    from trainer.loops import registry

    kept: list[Any] = []
    made = registry.make_stage

    def keeping(job: Any) -> Any:
        kept.append(made(job))
        return kept[-1]

    def _exported(recipe: str, lora: bool) -> tuple[Path, Any]:
        config = {**CONFIGS[recipe], **({} if lora else {"model": {"lora": None}})}
        pair = {
            "responses": (Response(id="a", text=ANSWERS[0]), Response(id="b", text=ANSWERS[1])),
            "preferences": (Preference(a="a", b="b", strength=-2, rater="r"),),
        }
        (tmp_path / "examples.jsonl").write_text(
            "".join(e.model_copy(update=pair).canonical() + "\n" for e in examples)
        )
        assert run(resolve(recipe, config), tmp_path / "examples.jsonl", tiny_dir, tmp_path / "run")
        monkeypatch.setattr(registry, "make_stage", keeping)
        (artifact,) = export.work(Client(tmp_path / "run", tiny_dir, recipe, config, 1))["artifacts"]  # type: ignore[arg-type]
        return tmp_path / "run" / artifact["path"], kept[-1]

    return _exported


def loaded(stock: Any, folder: Path, base: Path, **options: Any) -> Any:
    from peft import PeftModel

    if (folder / "adapter_config.json").is_file():
        return PeftModel.from_pretrained(stock.from_pretrained(base, **options), folder).eval()
    return stock.from_pretrained(folder, **options).eval()


def changed(folder: Path, base: Path) -> bool:
    """Whether training has changed the model: by an adapter that adds something, or by other weights."""
    from safetensors.torch import load_file

    if (folder / "adapter_model.safetensors").is_file():
        found = load_file(folder / "adapter_model.safetensors")
        return any(bool(tensor.any()) for name, tensor in found.items() if "lora_B" in name)
    mine, theirs = load_file(folder / "model.safetensors"), load_file(base / "model.safetensors")
    return any(not mine[name].equal(theirs[name]) for name in theirs if name in mine)


@pytest.mark.parametrize("lora", [True, False], ids=["adapter", "whole"])
@pytest.mark.parametrize("recipe", ["dpo", "policy"])
def test_greedy_tokens_are_those_of_the_run(exported: Any, tiny_dir: Path, recipe: str, lora: bool) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from trainer.loops.supervised.answering import greedy_answers

    folder, stage = exported(recipe, lora)
    assert changed(folder, tiny_dir)
    learner = stage.parts.learner if recipe == "policy" else stage._learner
    answers = greedy_answers(learner, load_tokenizer(tiny_dir), PROMPTS, 12, lambda done, total: None)
    mine = [answer.text for answer in answers]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), loaded(AutoModelForCausalLM, folder, tiny_dir)
    for prompt, expected in zip(PROMPTS, mine, strict=True):
        text = tokenizer.apply_chat_template(
            [message.model_dump() for message in prompt], add_generation_prompt=True, tokenize=False
        )
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        assert tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True) == expected
    assert any(mine)


@pytest.mark.parametrize("lora", [True, False], ids=["adapter", "whole"])
def test_scores_are_those_of_the_run(exported: Any, tiny_dir: Path, lora: bool) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder, stage = exported("reward_model", lora)
    assert changed(folder, tiny_dir)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = loaded(AutoModelForSequenceClassification, folder, tiny_dir, num_labels=1)
    for prompt in PROMPTS:
        for answer in ANSWERS:
            said = [{"role": "user", "content": prompt[0].content}, {"role": "assistant", "content": answer}]
            text = tokenizer.apply_chat_template(said, tokenize=False)
            ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                theirs = float(model(input_ids=ids).logits[0, 0])
                mine = float(stage._learner.scores([tuple(ids[0].tolist())])[0])
            assert theirs == pytest.approx(mine, abs=1e-5)

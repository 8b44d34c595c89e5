"""Ten updates compared with TRL's trainers. The model, data, order and optimiser are the same, and so are the losses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trainer.contracts import Example

from ...running import run
from ..conftest import metrics_of
from ..texts import demonstrations, make_config, preferences, write_examples

pytest.importorskip("trl", reason="TRL is a test-only peer, pinned in the lock")
pytestmark = pytest.mark.slow  # importing TRL takes most of this time

UPDATES, BATCH, LR = 10, 4, 2e-3
OPTIM = {"lr": LR, "schedule": "linear", "beta2": 0.99, "grad_clip": 0.5}


def ours(recipe: str, examples: Sequence[Example], model: Path, folder: Path, **changes: Any) -> list[float]:
    config = make_config(
        recipe,
        steps=UPDATES,
        batch_size=BATCH,
        optim=OPTIM,
        evaluation={"every": 0, "max_examples": 0},
        checkpoint={"every": UPDATES},
        **changes,
    )
    assert run(config, write_examples(examples, folder / "data.jsonl"), model, folder / "run")
    found = metrics_of(folder / "run")
    return [found[step, "train/loss"] for step in range(1, UPDATES + 1)]


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    """Arguments for any of TRL's trainers that make it do the same as `ours`."""
    return {
        "output_dir": str(folder / "trl"),
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "per_device_train_batch_size": BATCH,
        "max_steps": UPDATES,
        "learning_rate": LR,
        "lr_scheduler_type": "linear",
        "warmup_steps": 0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.99,
        "weight_decay": 0.0,  # both exclude norms and biases
        "max_grad_norm": 0.5,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        **more,
    }


def losses_of(trainer_class: Any, **arguments: Any) -> list[float]:
    """The loss of each update, in the order of the data."""
    from torch.utils.data import SequentialSampler

    found: list[float] = []

    class Traced(trainer_class):  # type: ignore[misc]
        def _get_train_sampler(self, dataset: Any = None) -> Any:
            return SequentialSampler(self.train_dataset)

        def training_step(self, *given: Any, **named: Any) -> Any:
            loss = super().training_step(*given, **named)
            found.append(float(loss))
            return loss

    Traced(**arguments).train()
    return found


def messages(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def test_supervised_tuning(tiny_dir: Path, tmp_path: Path) -> None:
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    examples = [
        example.model_copy(update={"reference": (example.reference or "") * (1 + place % 3)})  # of different lengths
        for place, example in enumerate(demonstrations(24, 0))
    ]
    mine = ours("sft", examples, tiny_dir, tmp_path, data={"source": "references", "shuffle": False})
    rows = [
        {"prompt": messages("user", e.prompt[0].content), "completion": messages("assistant", e.reference or "")}
        for e in examples
    ]
    theirs = losses_of(
        SFTTrainer,
        model=AutoModelForCausalLM.from_pretrained(tiny_dir),
        processing_class=AutoTokenizer.from_pretrained(tiny_dir),
        args=SFTConfig(**settings(tmp_path)),
        train_dataset=Dataset.from_list(rows),
    )
    assert mine == pytest.approx(theirs, abs=1e-4)
    assert mine[-1] < mine[0] - 0.5  # the model has learnt, so later losses depend on the updates


def pairs_of(examples: Sequence[Example]) -> list[dict[str, Any]]:
    rows = []
    for example in examples:
        (preference,) = example.preferences
        texts = {response.id: response.text for response in example.responses}
        chosen, rejected = (
            (preference.a, preference.b) if (preference.strength or 0) < 0 else (preference.b, preference.a)
        )
        rows.append(
            {
                "prompt": messages("user", example.prompt[0].content),
                "chosen": messages("assistant", texts[chosen]),
                "rejected": messages("assistant", texts[rejected]),
            }
        )
    return rows


def uneven(examples: Sequence[Example]) -> list[Example]:
    """Pairs with answers of different lengths."""
    return [
        example.model_copy(
            update={
                "responses": tuple(
                    response.model_copy(update={"text": response.text * (1 + (place + side) % 3)})
                    for side, response in enumerate(example.responses)
                )
            }
        )
        for place, example in enumerate(examples)
    ]


def test_a_reward_model_with_margins_and_centring(tiny_dir: Path, tmp_path: Path) -> None:
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import RewardConfig, RewardTrainer

    from trainer.inference.models import load_scalar
    from trainer.seeding import derive_seed

    examples = [
        example.model_copy(
            update={
                "preferences": tuple(
                    p.model_copy(update={"strength": _grown(p.strength or 0, 1 + i % 3)}) for p in example.preferences
                )
            }
        )
        for i, example in enumerate(uneven(preferences(40, 0)))
    ]
    mine = ours("reward_model", examples, tiny_dir, tmp_path, margin=0.2, centre=0.05, data={"shuffle": False})
    rows = [row | {"margin": 0.2 * (1 + i % 3)} for i, row in enumerate(pairs_of(examples))]
    theirs = losses_of(
        RewardTrainer,
        model=load_scalar(tiny_dir, seed=derive_seed(0, "head")),
        processing_class=AutoTokenizer.from_pretrained(tiny_dir),
        args=RewardConfig(**settings(tmp_path), center_rewards_coefficient=0.05),
        train_dataset=Dataset.from_list(rows),
    )
    assert mine == pytest.approx(theirs, abs=1e-4)
    assert len(set(mine)) == UPDATES


@pytest.mark.parametrize("nll_weight", [0.0, 0.2])
def test_direct_preference_optimisation(nll_weight: float, tiny_dir: Path, tmp_path: Path) -> None:
    """TRL's imitation term averages over all tokens of the batch, ours over each answer. They are compared on equal lengths."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import DPOConfig, DPOTrainer

    examples = preferences(40, 0) if nll_weight else uneven(preferences(40, 0))
    loss = {"beta": 0.3, "nll_weight": nll_weight}
    mine = ours("dpo", examples, tiny_dir, tmp_path, loss=loss, data={"shuffle": False})
    losses = {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, nll_weight]} if nll_weight else {}
    theirs = losses_of(
        DPOTrainer,
        model=AutoModelForCausalLM.from_pretrained(tiny_dir),
        processing_class=AutoTokenizer.from_pretrained(tiny_dir),
        args=DPOConfig(**settings(tmp_path), beta=0.3, **losses),
        train_dataset=Dataset.from_list(pairs_of(examples)),
    )
    assert mine == pytest.approx(theirs, abs=1e-4)
    assert len(set(mine)) == UPDATES


def _grown(strength: int, size: int) -> int:
    return size if strength > 0 else -size

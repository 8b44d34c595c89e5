"""Sections that recipes share."""

from typing import Literal

from ..fields import Section, knob


class Lora(Section):
    """Low-rank adapters on every linear layer. If they are off, all weights are trained."""

    rank: int = knob(16, "Rank of the adapters", ge=1, le=512)
    alpha: float = knob(32.0, "Scale of the adapters; their output is multiplied by alpha / rank", gt=0)


class Model(Section):
    name: str = knob("smollm2-135m-instruct", "A registered model", min_length=1, source="models")
    dtype: Literal["float32", "bfloat16"] = knob(
        "float32", "Precision of the model; the trained weights are always kept in float32"
    )
    lora: Lora | None = knob(Lora(), "Train adapters instead of all weights")
    export: Literal["adapter", "merged"] = knob(
        "adapter",
        "The files that a run with adapters saves: only the adapter, which is some megabytes and needs this base model, or a whole "
        "model with the adapter merged into its weights",
        advanced=True,
        when=("lora", ()),
    )


class Optim(Section):
    optimizer: Literal["adamw", "muon"] = knob(
        "adamw", "`muon`: Muon for the matrices of the layers, AdamW for embeddings, head and norms"
    )
    lr: float = knob(2e-4, "Peak learning rate", gt=0, le=1)
    schedule: Literal["constant", "linear", "cosine"] = knob(
        "constant", "How the learning rate changes after the warm-up"
    )
    warmup_steps: int = knob(0, "Steps of linear warm-up", unit="steps", ge=0)
    weight_decay: float = knob(0.0, "Decoupled weight decay", ge=0, le=1, advanced=True)
    decay: Literal["matrices", "all"] = knob(
        "matrices",
        "Which weights `weight_decay` shrinks: `matrices` (neither norms nor biases), or `all`",
        advanced=True,
        when=("weight_decay", ()),
    )
    beta1: float = knob(0.9, "Decay rate of AdamW's first moment", ge=0, lt=1, advanced=True)
    beta2: float = knob(0.99, "Decay rate of AdamW's second moment", ge=0, lt=1, advanced=True)
    momentum: float = knob(0.95, "Momentum of Muon", ge=0, lt=1, advanced=True, when=("optimizer", ("muon",)))
    grad_clip: float = knob(1.0, "Largest norm of the gradient", gt=0)
    micro_batch_tokens: int = knob(
        1024,
        "Tokens per forward pass: more use a GPU better, fewer need less memory",
        unit="tokens",
        ge=64,
        advanced=True,
    )
    recompute_activations: bool = knob(
        False, "Compute each layer again in the backward pass instead of keeping its activations", advanced=True
    )


class Evaluation(Section):
    every: int = knob(
        10, "Steps between evaluations on the held-out split; 0: only before and after", unit="steps", ge=0
    )
    max_examples: int = knob(
        40, "The most held-out examples of an evaluation, from the first in the dataset's order", ge=0
    )


class Checkpoint(Section):
    every: int = knob(10, "Steps between checkpoints; the last step is always kept", unit="steps", ge=1)
    keep: int = knob(2, "Number of the newest checkpoints that are kept", ge=1)


class Reserved(Section):
    """The resources that Ray reserves on one machine for the process of a run. The run waits in the line until it is free. The process may use more."""

    cpus: float = knob(
        0.0, "Processors that Ray reserves for the process of the run; 0: none are reserved", unit="CPUs", ge=0, le=1024
    )
    memory_gb: float = knob(
        0.0, "Memory that Ray reserves for the process of the run; 0: none is reserved", unit="GB", ge=0, le=65_536
    )

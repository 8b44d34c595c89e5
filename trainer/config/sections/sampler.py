"""The section of a config chooses the sampler of responses (docs/samplers.md)."""

from collections.abc import Iterator
from typing import Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from ..memory_inventory import Sampling

VLLM = ("kind", ("vllm", "vllm_server"))


class Sampler(Section):
    """`local`: a copy of the model in the process that trains. `vllm`, `vllm_server`: an engine of vLLM."""

    kind: Literal["local", "vllm", "vllm_server"] = knob(
        "local",
        "`local`: a copy of the model in the process that trains. `vllm`: an engine that the run starts beside it. "
        "`vllm_server`: a server that already runs. The last two need vLLM to be installed",
    )
    precision: Literal["model", "int8", "int4"] = knob(
        "model",
        "`model`: sample in the precision of the trained model (model.dtype). `int8`: linear layers have weights and "
        "inputs of eight bits. `int4`: weights of four bits. The weights are rounded again at each push, so the sampler "
        "differs a little from the trained model: choose an objective that corrects for that, such as icepop. Only for the "
        "local sampler",
        advanced=True,
    )
    max_batch: int = knob(64, "Number of responses that are decoded at the same time", unit="responses", ge=1, le=4096)
    push: Literal["merged", "adapters"] = knob(
        "merged",
        "Whether a push merges the adapters into the weights, or sends the adapters alone, which are a few megabytes. In "
        "bfloat16, merged weights lose small changes to rounding; separate adapters take a little more time per token",
    )
    url: str = knob(
        "http://127.0.0.1:8001",
        "With `vllm_server`: its address",
        when=("kind", ("vllm_server",)),
        pattern=r"^https?://[^/@]+/?$",
    )
    kv_cache_gb: float = knob(
        2.0,
        "With `vllm`: memory for the keys and values of the responses that are being sampled",
        unit="GiB",
        when=VLLM,
        gt=0,
        le=4096,
    )
    compile: bool = knob(
        False,
        "With `vllm`: compile the model. This takes minutes at the start and is worth it on GPUs",
        advanced=True,
        when=("kind", ("vllm",)),
    )
    folder: str = knob(
        "",
        "With vLLM: folder through which the learner hands over weights; both sides must see it under this path. Empty: shared memory",
        advanced=True,
        when=VLLM,
    )

    def sampling(
        self, prompt_tokens: int, new_tokens: int, responses: int, copies: int = 0, copy_gpus: int = 0
    ) -> Sampling:
        """The contents of the sampler's memory if up to `responses` are asked for at once."""
        by: Literal["local", "vllm", "elsewhere"] = "elsewhere" if self.kind == "vllm_server" else self.kind
        return Sampling(
            by,
            prompt_tokens,
            new_tokens,
            min(self.max_batch, responses),
            self.kv_cache_gb,
            copies,
            copy_gpus,
            whole_copy=self.precision == "model" and self.push == "merged",
        )

    def problems(self, adapters: bool, runner: str) -> Iterator[FieldProblem]:
        """Combinations of values that cannot work."""
        if self.push == "adapters" and not adapters:
            yield FieldProblem("sampler.push", "there are no adapters without model.lora; set it to 'merged'")
        if self.precision != "model" and self.kind != "local":
            yield FieldProblem(
                "sampler.precision",
                "vLLM would round the weights again at each push, and then hold other weights than it was given; choose "
                "kind 'local', or 'model'",
            )
        if self.precision != "model" and runner == "async":
            yield FieldProblem(
                "sampler.precision",
                "workers of an asynchronous run take the weights as they are trained, without rounding; choose runner.kind 'sync' or 'offline', or 'model'",
            )
        if self.push == "adapters" and self.kind == "local" and runner == "async":
            yield FieldProblem(
                "sampler.push",
                "workers with the local sampler must be able to repeat every response exactly, and that is only sure with "
                "merged weights; set this to 'merged'",
            )
        if self.kind == "vllm_server" and runner == "async":
            yield FieldProblem(
                "sampler.kind",
                "a server holds one version of the weights, but the workers of an asynchronous run hold several; choose "
                "'vllm', which gives each worker its own engine",
            )

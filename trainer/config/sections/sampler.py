"""What samples the responses (docs/samplers.md)."""

from collections.abc import Iterator
from typing import Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from ..holdings import Sampling

VLLM = ("kind", ("vllm", "vllm_server"))


class Sampler(Section):
    """`local`: a copy of the model in the process that trains. `vllm`, `vllm_server`: an engine of vLLM."""

    kind: Literal["local", "vllm", "vllm_server"] = knob(
        "local",
        "`local`: a copy of the model in the process that trains. `vllm`: an engine that the run starts beside it. "
        "`vllm_server`: a server that runs already. The latter two need vLLM installed",
    )
    precision: Literal["model", "int8", "int4"] = knob(
        "model",
        "`model`: samples in the precision of the trained model (model.dtype). `int8`: linear layers have weights and inputs of eight bits; "
        "`int4`: weights of four. They are rounded anew at each push, so the sampler is not quite the model that is trained: choose an "
        "objective that minds the difference, such as icepop. For the local sampler",
        advanced=True,
    )
    max_batch: int = knob(64, "Responses decoded side by side", unit="responses", ge=1, le=4096)
    push: Literal["merged", "adapters"] = knob(
        "merged",
        "Adapters are merged into the weights that are pushed, or pushed as they are: a few megabytes, beside the weights. In "
        "bfloat16 small changes round away in merged weights; unmerged adapters take a little more time per token",
    )
    url: str = knob(
        "http://127.0.0.1:8001",
        "With `vllm_server`: its address",
        when=("kind", ("vllm_server",)),
        pattern=r"^https?://[^/@]+/?$",
    )
    kv_cache_gb: float = knob(
        2.0, "With `vllm`: memory for the keys and values of responses under way", unit="GiB", when=VLLM, gt=0, le=4096
    )
    compile: bool = knob(
        False,
        "With `vllm`: compile the model, which takes minutes at the start and pays on GPUs",
        advanced=True,
        when=("kind", ("vllm",)),
    )
    folder: str = knob(
        "",
        "With vLLM: folder through which weights are handed over, seen under this path by both sides; empty: shared memory",
        advanced=True,
        when=VLLM,
    )

    def sampling(
        self, prompt_tokens: int, new_tokens: int, responses: int, copies: int = 0, copy_gpus: int = 0
    ) -> Sampling:
        """What the sampler holds in memory if up to so many responses are asked for at once."""
        by: Literal["local", "vllm", "elsewhere"] = "elsewhere" if self.kind == "vllm_server" else self.kind
        return Sampling(
            by, prompt_tokens, new_tokens, min(self.max_batch, responses), self.kv_cache_gb, copies, copy_gpus
        )

    def problems(self, adapters: bool, runner: str) -> Iterator[FieldProblem]:
        """Combinations of values that cannot work."""
        if self.push == "adapters" and not adapters:
            yield FieldProblem("sampler.push", "there are no adapters without model.lora; set it to 'merged'")
        if self.precision != "model" and self.kind != "local":
            yield FieldProblem(
                "sampler.precision",
                "vLLM would have to round weights anew at each push, and then hold others than it was given; choose kind 'local', "
                "or 'model'",
            )
        if self.precision != "model" and runner == "async":
            yield FieldProblem(
                "sampler.precision",
                "workers of an asynchronous run take weights as they are trained; choose runner.kind 'sync' or 'offline', or 'model'",
            )
        if self.push == "adapters" and self.kind == "local" and runner == "async":
            yield FieldProblem(
                "sampler.push",
                "workers with the local sampler give every response to the last bit again, which is known of merged weights "
                "only; set it to 'merged'",
            )
        if self.kind == "vllm_server" and runner == "async":
            yield FieldProblem(
                "sampler.kind",
                "a server holds one version of the weights, the workers of an asynchronous run hold several; choose "
                "'vllm', which gives each worker an engine of its own",
            )

"""The `Sampler` protocol on an engine of vLLM of any supported version, in this process or elsewhere."""

import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from safetensors.torch import save_file
from torch import Tensor

from trainer.inference.chat import response_text
from trainer.inference.sampling import (
    EngineLost,
    FinishReason,
    SampleFinished,
    SampleRequest,
    SampleResult,
    SamplingProgress,
)

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a private folder is made in it
_ADAPTERS = ("lora_A", "lora_B")
Level = Literal[1, 2]
Asleep = Literal["weights", "kv_cache"]
"""The parts of an engine that sleep, with vLLM's names."""


@dataclass(frozen=True)
class Generated:
    """One response as an engine gives it. `versions`: the distinct weight versions of its tokens, in order."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str
    versions: tuple[str, ...]


GeneratedOne = Callable[[int, Generated], None]
"""Called with the place of a request and its response when the response has ended."""


class VllmEngine(Protocol):
    """The interface of each version's module. Each method raises EngineLost if the engine's process has ended."""

    def generate(
        self,
        requests: Sequence[SampleRequest],
        stop_ids: Sequence[int],
        progress: SamplingProgress | None,
        finished: GeneratedOne | None,
    ) -> list[Generated]: ...

    def add(self, number: int, request: SampleRequest, stop_ids: Sequence[int]) -> None:
        """Sample this request beside the others. Raises SamplerInvalid if it does not fit. `add`, `step` and `abort` are for workers,
        which have their own engine: a server offers only `generate`.
        """
        ...

    def step(self) -> list[tuple[int, Generated]]:
        """Go on with all that were added; returns those that have ended."""
        ...

    def abort(self, numbers: Sequence[int]) -> None: ...

    def update(self, path: Path, kind: Literal["weights", "adapters"], version: int) -> None:
        """Load weights from a safetensors file, or adapters from a folder in PEFT's format; caches are emptied."""
        ...

    def sleep(self, level: Level) -> None:
        """Give back GPU memory: at level 1 weights go to the machine's memory, at level 2 they are dropped. Keys
        and values are dropped in either case. Only if the engine was started for that (`arguments`).
        """
        ...

    def wake(self, part: Asleep) -> None:
        """Take the memory of this part again."""
        ...

    def checksum(self, names: Sequence[str]) -> str:
        """`Checksum` of these parameters, as the worker computes with them."""
        ...

    def close(self) -> None: ...


class VllmSampler:
    """Sends weights through a file in `folder`, by default in shared memory; the file is removed as soon as it is loaded.

    Adapters are recognised by their names, `<layer>.lora_A.weight` and `<layer>.lora_B.weight`; the latter is multiplied
    by the scale.

    An engine on the learner's GPU sleeps at level `sleeps` while the learner works; None: the engine has its own memory. Its weights
    wake for a push, its keys and values only when it samples, so a push needs no room for them.
    """

    def __init__(
        self,
        engine: VllmEngine,
        tokenizer: Any,
        stop_ids: Iterable[int],
        folder: str = "",
        sleeps: Level | None = None,
    ) -> None:
        self._sleeps, self._asleep, self._forgotten = sleeps, set[Asleep](), False
        self._engine, self._tokenizer, self._stop_ids = engine, tokenizer, sorted(stop_ids)
        self._folder = folder or (str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None)
        self.version = self.generated = 0

    versions_at_once = 1.0
    """An engine holds one set of weights; other weights are pushed once nothing is sampled by the present ones."""

    def open(self, weights: Iterable[tuple[str, Tensor]], version: int) -> tuple["VllmRunning", str]:
        return VllmRunning(self), self.load_weights(weights, version)

    def sample(
        self,
        requests: Sequence[SampleRequest],
        progress: SamplingProgress | None = None,
        finished: SampleFinished | None = None,
    ) -> list[SampleResult]:
        def ended(place: int, one: Generated) -> None:
            if finished:
                finished(place, self._result(requests[place], one))

        self._wake("weights", "kv_cache")
        if self._forgotten:
            raise EngineLost("vLLM dropped its weights when it was put to sleep, and no weights were pushed since")
        found = self._engine.generate(requests, self._stop_ids, progress, ended if finished else None)
        self.generated += sum(len(one.tokens) for one in found)
        return [self._result(request, one) for request, one in zip(requests, found, strict=True)]

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> str:
        self._wake("weights")
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights}
        adapters = any(part in name for name in tensors for part in _ADAPTERS)
        folder = Path(tempfile.mkdtemp(prefix="touchstone-push-", dir=self._folder))
        try:
            if adapters:
                _write_adapters(folder, tensors)
                self._engine.update(folder, "adapters", version)
            else:
                file = folder / "weights.safetensors"
                save_file(tensors, file)
                self._engine.update(file, "weights", version)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self.version, self._forgotten = version, False
        return self._engine.checksum(list(tensors))

    def rest(self) -> None:
        if self._sleeps and not self._asleep:
            self._engine.sleep(self._sleeps)
            self._asleep, self._forgotten = {"weights", "kv_cache"}, self._sleeps == 2

    def close(self) -> None:
        self._engine.close()

    def _wake(self, *parts: Asleep) -> None:
        for part in parts:
            if part in self._asleep:
                self._engine.wake(part)
                self._asleep.discard(part)

    def _result(self, request: SampleRequest, one: Generated) -> SampleResult:
        if one.versions not in ((), (str(self.version),)):
            raise EngineLost(
                f"vLLM sampled with weights {', '.join(one.versions)} where {self.version} was asked for: somebody else "
                "pushes to this server. Give the run a server of its own."
            )
        reason: FinishReason = "stop" if one.finish_reason == "stop" else "length"
        # A greedy choice is certain, but vLLM gives its log-probability at temperature 1.
        logprobs = one.logprobs if request.temperature > 0 else (0.0,) * len(one.tokens)
        text = response_text(self._tokenizer, one.tokens, request.stop)
        return SampleResult(one.tokens, logprobs, text, reason, self.version)


class VllmRunning:
    """Responses beside each other in vLLM's own batch. Each has its seed, whenever others join. Their log-probabilities are
    the same to the last bit only if vLLM computes independently of the batch (`VLLM_BATCH_INVARIANT`).
    """

    def __init__(self, sampler: VllmSampler) -> None:
        self._sampler, self._engine = sampler, sampler._engine
        self._asked: dict[int, tuple[Hashable, SampleRequest]] = {}
        self._count = 0

    def join(self, name: Hashable, request: SampleRequest) -> None:
        self._count += 1
        self._engine.add(self._count, request, self._sampler._stop_ids)
        self._asked[self._count] = name, request

    def step(self) -> list[tuple[Hashable, SampleResult]]:
        ended = []
        for number, one in self._engine.step():
            if number in self._asked:
                name, request = self._asked.pop(number)
                ended.append((name, self._sampler._result(request, one)))
        return ended

    def leave(self, names: Collection[Hashable]) -> None:
        gone = [number for number, (name, _) in self._asked.items() if name in names]
        self._engine.abort(gone)
        for number in gone:
            del self._asked[number]

    def close(self) -> None:
        self._engine.abort(list(self._asked))
        self._asked.clear()


def _write_adapters(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Write a folder in PEFT's format; alpha = rank, because the tensors contain the scale already."""
    rank = next(tensor.shape[0] for name, tensor in tensors.items() if ".lora_A." in name)
    layers = sorted({name.split(".lora_")[0].rpartition(".")[2] for name in tensors})
    settings = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": layers, "task_type": "CAUSAL_LM"}
    (folder / "adapter_config.json").write_text(json.dumps(settings | {"bias": "none", "base_model_name_or_path": ""}))
    save_file(
        {f"base_model.model.{name}": tensor for name, tensor in tensors.items()}, folder / "adapter_model.safetensors"
    )

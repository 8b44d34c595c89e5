"""vLLM 0.32: the engine beside this process, and the server.

Only public parts are used: `LLM` with `LLMEngine.add_request` and `step`; the weight-transfer calls with our own engine,
registered in `v0_32_worker`; `LoRARequest`; the server's token-level route and its routes for reinforcement learning.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from http import HTTPStatus
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Literal, NoReturn

import httpx

from trainer.inference.checksum import FORMAT
from trainer.inference.sampling import EngineLost, SampleRequest, SamplerInvalid, SamplingProgress
from trainer.memory.shape import GIB

from .memory import CardMemory, longest_context, share_of_card
from .sampler import Asleep, Generated, GeneratedOne, Level

EXTENSION = "trainer.inference.vllm.v0_32_worker.Worker"
TRANSFER = "touchstone_file"
ADAPTER = "policy"
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
_ROOT = Path(__file__).parents[3]
_LOOK_S = 1.0
_ENDED = "vLLM's engine process has ended; its log says why"
_TIMEOUT = httpx.Timeout(3600.0, connect=5.0)


def arguments(
    model_dir: Path,
    dtype: str,
    max_batch: int,
    kv_cache_gb: float,
    rank: int | None,
    eager: bool,
    card: CardMemory | None,
    sleeps: bool = False,
) -> dict[str, Any]:
    """Arguments of `LLM` and, with dashes, of the server. `rank` is that of later adapters; None if whole weights are pushed. `card` is
    the GPU; None for an engine on the CPU, which cannot sleep. Raises SamplerInvalid if the memory is too small.
    """
    cache_bytes = int(kv_cache_gb * GIB)
    wanted: dict[str, Any] = {
        "model": str(model_dir),
        "dtype": dtype,
        "max_num_seqs": max_batch,
        "kv_cache_memory_bytes": cache_bytes,
        "max_model_len": longest_context(model_dir, dtype, cache_bytes),
        "enforce_eager": eager,
        "generation_config": "vllm",  # without temperatures or penalties that the model's folder recommends
        "logprobs_mode": "processed_logprobs",  # of the distribution that was drawn from
        "worker_extension_cls": EXTENSION,
        "weight_transfer_config": {"backend": TRANSFER},
    }
    if card is not None:
        wanted |= {"enable_sleep_mode": True} if sleeps else {}
        wanted["gpu_memory_utilization"] = share_of_card(card, model_dir, dtype, cache_bytes)
    if rank is not None:
        wanted |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": min(r for r in _RANKS if r >= rank)}
    return wanted


def settings(sockets: str, eager: bool) -> dict[str, str]:
    """Environment variables that vLLM reads when it is imported."""
    return {
        # vLLM compiles parts of its sampler even then, which needs a C++ compiler and delays the first response
        "TORCH_COMPILE_DISABLE": "1" if eager else "0",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "3600",  # seconds of one step; the default of 300 is too short for a machine under load
        "VLLM_RPC_BASE_PATH": sockets,
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # otherwise all engines would bind to the same cores
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would inherit the locks of torch's threads
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "WARNING"),
    }


class OfflineEngine:
    """An engine in its own process, started here and ended with `close`."""

    def __init__(self, **wanted: Any) -> None:
        self._sockets = tempfile.TemporaryDirectory(prefix="touchstone-vllm-")
        os.environ.update(settings(self._sockets.name, wanted["enforce_eager"]))
        from vllm import LLM
        from vllm.lora.request import LoRARequest

        before = multiprocessing.active_children()
        try:
            self._llm = LLM(**wanted, disable_log_stats=True)
        except Exception as error:
            self._sockets.cleanup()
            raise SamplerInvalid(f"vLLM does not start with {wanted['model']}: {error}") from error
        self._call = Watched([child for child in multiprocessing.active_children() if child not in before])
        self._call(self._llm.collective_rpc, "touchstone_follow", args=(str(os.getpid()),))
        self._call(self._llm.init_weight_transfer_engine, {"init_info": {}})
        self._lora = LoRARequest
        self._adapter: Any = None
        self._longest: int = wanted["max_model_len"]

    def generate(
        self,
        requests: Sequence[SampleRequest],
        stop_ids: Sequence[int],
        progress: SamplingProgress | None,
        finished: GeneratedOne | None,
    ) -> list[Generated]:
        check_lengths(requests, self._longest)
        found: dict[int, Generated] = {}
        for place, request in enumerate(requests):
            self.add(place, request, stop_ids)
        try:
            while self._llm.llm_engine.has_unfinished_requests():
                ended = self.step()
                found |= dict(ended)
                if finished:
                    for place, one in ended:
                        finished(place, one)
                if progress:
                    progress(len(found), len(requests))
        except EngineLost:
            raise
        except BaseException:
            self.abort([place for place in range(len(requests)) if place not in found])
            raise
        return [found[place] for place in range(len(requests))]

    def add(self, number: int, request: SampleRequest, stop_ids: Sequence[int]) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        check_lengths([request], self._longest)
        drawn = SamplingParams(**drawing(request, stop_ids), output_kind=RequestOutputKind.FINAL_ONLY)
        prompt = {"prompt_token_ids": list(request.prompt_tokens)}
        self._call(self._llm.llm_engine.add_request, str(number), prompt, drawn, lora_request=self._adapter)

    def step(self) -> list[tuple[int, Generated]]:
        outputs = self._call(self._llm.llm_engine.step)
        return [(int(output.request_id), _generated(output.outputs[0])) for output in outputs if output.finished]

    def abort(self, numbers: Sequence[int]) -> None:
        self._llm.llm_engine.abort_request([str(number) for number in numbers])

    def update(self, path: Path, kind: Literal["weights", "adapters"], version: int) -> None:
        llm, call = self._llm, self._call
        if kind == "weights":
            call(llm.start_weight_update)
            call(llm.update_weights, {"update_info": {"path": str(path)}})
            call(llm.finish_weight_update, str(version))
        else:
            call(llm.llm_engine.add_lora, self._lora(ADAPTER, 1, str(path), load_inplace=True))
            self._adapter = self._lora(ADAPTER, 1, str(path))
            call(llm.update_weight_version, str(version))
        call(llm.reset_prefix_cache)

    def sleep(self, level: Level) -> None:
        self._call(self._llm.sleep, level=level)

    def wake(self, part: Asleep) -> None:
        self._call(self._llm.wake_up, tags=[part])

    def checksum(self, names: Sequence[str]) -> str:
        rpc = self._llm.collective_rpc
        return str(self._call(rpc, "touchstone_checksum", args=(json.dumps(list(names)),))[0])

    def close(self) -> None:
        self._llm.llm_engine.engine_core.shutdown()
        self._sockets.cleanup()


class Watched:
    """Makes calls in a separate thread: if its engine's process is killed, vLLM's synchronous client waits for ever."""

    def __init__(self, processes: Sequence[Any]) -> None:
        self._processes = processes
        self._todo: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        Thread(target=self._work, name="vllm-calls", daemon=True).start()

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function. Raises EngineLost if the process ended before or meanwhile."""
        from vllm.v1.engine.exceptions import EngineDeadError

        self._todo.put(lambda: function(*args, **kwargs))
        while True:
            try:
                result, error = self._done.get(timeout=_LOOK_S)
            except Empty:
                if all(process.is_alive() for process in self._processes):
                    continue
                _lost(_ENDED)
            if isinstance(error, EngineDeadError):
                raise EngineLost(_ENDED) from error
            if error is not None:
                raise error
            return result

    def _work(self) -> None:
        while True:
            try:
                self._done.put((self._todo.get()(), None))
            except BaseException as error:  # raised in the caller's thread
                self._done.put((None, error))


class ServerEngine:
    """A server that `python -m trainer sampler-server` has started, here or on a machine that sees the sampler's `folder` too."""

    def __init__(self, url: str, dtype: str, rank: int | None, max_batch: int) -> None:
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT, trust_env=False)
        self._threads, self._rank, self._adapter = max_batch, rank, ""
        facts = self._facts()
        self._longest: int = facts["max_model_len"]
        if facts.get("checksum_format") != FORMAT:
            raise SamplerInvalid(
                f"the vLLM server at {url} was started by another version of this program, which checks weights "
                "differently; restart the server"
            )
        for name, wanted in (("logprobs_mode", "processed_logprobs"), ("dtype", dtype), ("workers", 1)):
            if facts[name] != wanted:
                raise SamplerInvalid(f"the vLLM server at {url} has {name} {facts[name]!r}, this run needs {wanted!r}")
        if rank is None and facts["max_lora_rank"]:
            raise SamplerInvalid(
                f"the vLLM server at {url} was started for adapters (--rank); set sampler.push to 'adapters'"
            )
        if rank is not None and facts["max_lora_rank"] < rank:
            raise SamplerInvalid(
                f"the vLLM server at {url} takes adapters of rank {facts['max_lora_rank']} at most, not {rank}; "
                "start it with --rank"
            )
        self._post("/init_weight_transfer_engine", {"init_info": {}})

    def generate(
        self,
        requests: Sequence[SampleRequest],
        stop_ids: Sequence[int],
        progress: SamplingProgress | None,
        finished: GeneratedOne | None,
    ) -> list[Generated]:
        check_lengths(requests, self._longest)
        found: dict[int, Generated] = {}
        pool = ThreadPoolExecutor(min(self._threads, len(requests) or 1))
        try:
            waiting = {pool.submit(self._one, request, stop_ids): i for i, request in enumerate(requests)}
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                if finished:
                    finished(waiting[done], found[waiting[done]])
                if progress:
                    progress(len(found), len(requests))
        finally:
            pool.shutdown(cancel_futures=True)
        return [found[place] for place in range(len(requests))]

    def _one(self, request: SampleRequest, stop_ids: Sequence[int]) -> Generated:
        body = {"token_ids": list(request.prompt_tokens), "sampling_params": drawing(request, stop_ids)}
        choice = self._post("/inference/v1/generate", body | ({"model": self._adapter} if self._adapter else {}))[
            "choices"
        ][0]
        spans = choice["weight_versions"] or []
        return _checked(
            choice["token_ids"],
            [entry["logprob"] for entry in choice["logprobs"]["content"]],
            choice["finish_reason"],
            [span["version"] for span in spans],
        )

    def update(self, path: Path, kind: Literal["weights", "adapters"], version: int) -> None:
        if kind == "weights":
            self._post("/start_weight_update", {})
            self._post("/update_weights", {"update_info": {"path": str(path)}})
            self._post("/finish_weight_update", {"weight_version": str(version)})
        else:
            # not in place: at every step the server would read such an adapter from its folder, which no longer exists then
            self._post("/v1/unload_lora_adapter", {"lora_name": ADAPTER}, absent=HTTPStatus.NOT_FOUND)
            self._post("/v1/load_lora_adapter", {"lora_name": ADAPTER, "lora_path": str(path)})
            self._adapter = ADAPTER
            self._post("/update_weight_version", {"new_version": str(version)})
        self._post("/reset_prefix_cache", {})

    def checksum(self, names: Sequence[str]) -> str:
        return str(self._rpc("touchstone_checksum", [json.dumps(list(names))]))

    def close(self) -> None:
        self._client.close()

    def _facts(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._rpc("touchstone_facts", [])))
        except EngineLost as error:
            raise SamplerInvalid(f"{error}. Start it with `python -m trainer sampler-server`.") from error

    def _rpc(self, method: str, args: list[str]) -> Any:
        return self._post("/collective_rpc", {"method": method, "args": args})["results"][0]

    def _post(self, path: str, body: dict[str, Any], absent: int = HTTPStatus.OK) -> Any:
        """The answer of the server; `absent` is a status that counts like 200."""
        try:
            response = self._client.post(path, json=body)
        except httpx.HTTPError as error:
            _lost(
                f"the vLLM server at {self._client.base_url} does not answer {path} ({type(error).__name__}: {error})"
            )
        if response.status_code not in (HTTPStatus.OK, absent):
            _lost(
                f"the vLLM server at {self._client.base_url} answers {path} with {response.status_code}: {response.text[:300]}"
            )
        return response.json() if response.content and "json" in response.headers.get("content-type", "") else None


def check_lengths(requests: Sequence[SampleRequest], longest: int) -> None:
    """Raises SamplerInvalid if a response may exceed the context: vLLM would cut it without a message."""
    for request in requests:
        if len(request.prompt_tokens) + request.max_new_tokens > longest:
            raise SamplerInvalid(
                f"a prompt of {len(request.prompt_tokens)} tokens and rollout.max_new_tokens {request.max_new_tokens} do not "
                f"fit the {longest} tokens that the model and vLLM's cache hold; raise sampler.kv_cache_gb (--kv-cache-gb of "
                "a server), or lower rollout.max_new_tokens"
            )


def drawing(request: SampleRequest, stop_ids: Sequence[int]) -> dict[str, Any]:
    """Fields of `SamplingParams`. Only our own tokens end a response; log-probabilities of the drawn tokens are returned."""
    return {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_new_tokens,
        "seed": request.seed,
        "stop": list(request.stop),
        "stop_token_ids": list(stop_ids),
        "ignore_eos": True,
        "logprobs": 0,
        "detokenize": bool(request.stop),
    }


def serve(wanted: dict[str, Any], host: str, port: int) -> int:
    """Run the server until it ends or this process is told to end; returns its exit status."""
    flags = ["--enable-scale-out"]  # the token-level route, which is off by default
    for name, value in wanted.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag] if value else []
        else:
            flags += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", host, "--port", str(port), *flags]
    with tempfile.TemporaryDirectory(prefix="touchstone-vllm-") as sockets:
        extra = settings(sockets, wanted["enforce_eager"]) | {
            "VLLM_SERVER_DEV_MODE": "1",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")])),
        }
        server = subprocess.Popen(command, env=os.environ | extra)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: server.send_signal(received))
        return server.wait()


def _generated(output: Any) -> Generated:
    drawn = [step[token].logprob for step, token in zip(output.logprobs, output.token_ids, strict=True)]
    spans = output.weight_versions or []
    return _checked(output.token_ids, drawn, output.finish_reason, [span.version for span in spans])


def _checked(tokens: Sequence[int], logprobs: Sequence[float], reason: str, versions: Sequence[str]) -> Generated:
    if reason not in ("stop", "length"):
        _lost(f"vLLM ended a response with {reason!r}")
    return Generated(tuple(tokens), tuple(logprobs), reason, tuple(dict.fromkeys(versions)))


def _lost(message: str) -> NoReturn:
    raise EngineLost(message)

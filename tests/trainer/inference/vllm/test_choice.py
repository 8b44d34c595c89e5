"""Which sampler a config gets, and the message if it cannot have it. These tests do not need vLLM."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from trainer.config import ConfigInvalid, resolve
from trainer.inference import build, vllm
from trainer.inference.build import HOSTS, build_sampler
from trainer.inference.checksum import FORMAT
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_tokenizer
from trainer.inference.sampling import SamplerInvalid


def sampler_of(tiny_dir: Path, **sampler: Any) -> Any:
    config: Any = resolve("policy", {"sampler": sampler})
    return build_sampler(config, tiny_dir, load_tokenizer(tiny_dir))


def test_by_default_the_model_samples_in_this_process(tiny_dir: Path) -> None:
    sampler = sampler_of(tiny_dir, max_batch=3)
    assert isinstance(sampler, LocalSampler) and sampler._max_batch == 3


def test_a_machine_without_vllm_says_how_to_get_it(tiny_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "_PACKAGES", ("no-such-package",))
    with pytest.raises(SamplerInvalid, match=r"not installed.*docs/samplers.md.*'local'"):
        sampler_of(tiny_dir, kind="vllm")


@pytest.mark.parametrize("version", ["0.31.4", "0.33.0", "1.0", "dev"])
def test_a_version_that_nobody_has_tried_is_refused(version: str) -> None:
    with pytest.raises(SamplerInvalid, match=f"vLLM {version} is not supported; supported: 0.32.x"):
        vllm.module_for(version)
    assert vllm.module_for("0.32.7+cpu").__name__.endswith("v0_32")


def test_a_server_elsewhere_must_be_allowed_where_the_run_trains(
    tiny_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SamplerInvalid, match=f"10.9.9.9 is not this machine; name it in {HOSTS}"):
        sampler_of(tiny_dir, kind="vllm_server", url="http://10.9.9.9:8001")
    monkeypatch.setattr(build, "PATIENCE_S", 0.0)
    with pytest.raises(SamplerInvalid, match="no vLLM server answers at http://127.0.0.1:9.*trainer sampler-server"):
        sampler_of(tiny_dir, kind="vllm_server", url="http://127.0.0.1:9")


def test_a_server_that_is_starting_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def get(url: str, **_: Any) -> Any:
        asked.append(url)
        if len(asked) < 3:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={"version": "0.32.0"})

    monkeypatch.setattr(httpx, "get", get)
    monkeypatch.setattr(build, "AGAIN_S", 0.0)
    assert build._version_of("http://127.0.0.1:9/", time.monotonic() + 60.0) == "0.32.0"
    assert asked == ["http://127.0.0.1:9/version"] * 3
    monkeypatch.setattr(httpx, "get", lambda url, **_: httpx.Response(200, json={"name": "something else"}))
    with pytest.raises(SamplerInvalid, match="no vLLM server answers"):
        build._version_of("http://127.0.0.1:9", time.monotonic() + 60.0)


@contextmanager
def server(status: int, posted: Any) -> Iterator[str]:
    """The address of a server that says it is vLLM and answers every POST with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(200, {"version": "0.32.0"})

        def do_POST(self) -> None:
            self.answer(status, posted)

        def answer(self, status: int, body: Any) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as found:
        Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def test_a_server_started_by_other_means_is_told_from_ours(tiny_dir: Path) -> None:
    """A server that vLLM starts by itself has no routes for reinforcement learning."""
    lacks = r"answers /collective_rpc with 404.*sampler-server"
    with server(404, {"detail": "Not Found"}) as url, pytest.raises(SamplerInvalid, match=lacks):
        sampler_of(tiny_dir, kind="vllm_server", url=url)


@pytest.mark.parametrize("told", [{}, {"checksum_format": FORMAT - 1}])
def test_a_server_that_checks_weights_in_another_way_must_be_restarted(tiny_dir: Path, told: dict[str, int]) -> None:
    facts = {"logprobs_mode": "processed_logprobs", "dtype": "float32", "workers": 1, "max_lora_rank": 0}
    answer = {"results": [json.dumps({**facts, "max_model_len": 512, **told})]}
    with server(200, answer) as url, pytest.raises(SamplerInvalid, match="another version.*restart the server"):
        sampler_of(tiny_dir, kind="vllm_server", url=url)


def test_combinations_that_cannot_work_are_said_at_their_field() -> None:
    adapters = {"sampler": {"kind": "vllm", "push": "adapters"}, "model": {"lora": None}}
    shared = {"sampler": {"kind": "vllm_server"}, "runner": {"kind": "async"}}
    for raw, path in ((adapters, "sampler.push"), (shared, "sampler.kind")):
        with pytest.raises(ConfigInvalid) as caught:
            resolve("policy", raw)
        assert [problem.path for problem in caught.value.problems] == [path]
    for url in ("file:///etc/passwd", "http://user@host", "http://host/path"):
        with pytest.raises(ConfigInvalid):
            resolve("policy", {"sampler": {"url": url}})

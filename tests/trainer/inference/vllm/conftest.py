"""A tiny model that vLLM's CPU attention can run, and samplers of each kind on it. Starting one takes half a minute, so the tests of a
module share it, and each test first pushes its own weights.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from trainer.config import PolicyConfig, resolve

SERVERS = [("vllm_server", "merged"), ("vllm_server", "adapters")]
KINDS = [("vllm", "merged"), ("vllm", "adapters"), *SERVERS]
_PATIENCE_S = 600.0


if find_spec("vllm") is None:
    collect_ignore = ["test_real.py", "test_runs.py"]  # `make test-vllm` installs it and runs these


@pytest.fixture(scope="session")
def small_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with heads of 32, because vLLM's attention on a CPU does not support 16."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from trainer.inference.models import make_tiny

    directory = tmp_path_factory.mktemp("models") / "small"
    make_tiny(directory)
    config = LlamaConfig.from_pretrained(directory)
    config.hidden_size, config.intermediate_size, config.head_dim = 128, 256, 32
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(directory)
    return directory


def vllm_config(kind: str = "vllm", push: str = "merged", url: str = "", **changes: Any) -> PolicyConfig:
    sampler = {"kind": kind, "push": push, "kv_cache_gb": 0.25, "max_batch": 16} | ({"url": url} if url else {})
    model = {"lora": {"rank": 8, "alpha": 12.0} if push == "adapters" else changes.pop("lora", None)}
    config = resolve("policy", {"sampler": sampler, "model": model, "scaffold": None} | changes)
    assert isinstance(config, PolicyConfig)
    return config


@contextmanager
def serving(model: Path, *flags: str) -> Iterator[str]:
    """The address of a server that answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "trainer", "sampler-server", "--model", str(model), "--port", str(port)]
    started = subprocess.Popen([*command, "--kv-cache-gb", "0.25", *flags])
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while not _answers(url):
            assert started.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.5)
        yield url
    finally:
        started.terminate()
        started.wait(60)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def setting(request: pytest.FixtureRequest, small_dir: Path) -> Iterator[tuple[Any, PolicyConfig]]:
    """(sampler, config) for each kind."""
    from trainer.inference.build import build_sampler
    from trainer.inference.models import load_tokenizer

    kind, push = request.param
    if kind == "vllm":
        config = vllm_config(kind, push)
        sampler = build_sampler(config, small_dir, load_tokenizer(small_dir))
        yield sampler, config
        sampler.close()
        return
    with serving(small_dir, *(["--rank", "8"] if push == "adapters" else [])) as url:
        config = vllm_config(kind, push, url)
        sampler = build_sampler(config, small_dir, load_tokenizer(small_dir))
        yield sampler, config
        sampler.close()

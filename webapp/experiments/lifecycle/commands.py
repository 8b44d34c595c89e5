"""How the process of a run is started, and whether what it samples with is there."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from django.conf import settings

NO_VLLM = (
    "vLLM is not installed beside Touchstone; in its folder `make gpu` installs it where there is a GPU, `make vllm` where there is "
    "none (some minutes, once), or choose 'local'"
)


def trainer_command(config: Mapping[str, Any]) -> str:
    """The shell command that a node of the Ray cluster runs for a run with this config."""
    own = _starts_vllm(config) and _made()
    return str(settings.VLLM_TRAINER_COMMAND if own else settings.TRAINER_COMMAND)


def sampler_is_missing(config: Mapping[str, Any]) -> bool:
    """True if a run with this config would fail for want of vLLM. A cluster with a command of its own is not known."""
    if settings.VLLM_ENVIRONMENT is None or not _starts_vllm(config):
        return False
    return not _made() and find_spec("vllm") is None


def _starts_vllm(config: Mapping[str, Any]) -> bool:
    """A server is elsewhere; to call it takes no vLLM."""
    return bool(config.get("sampler", {}).get("kind") == "vllm")


def _made() -> bool:
    """`make vllm` leaves this mark once everything is installed."""
    made = settings.VLLM_ENVIRONMENT
    return made is not None and any(made.glob(".installed-*"))

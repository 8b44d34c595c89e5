"""The command that starts the process of a run, and whether its sampler is installed."""

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
    """True if a run with this config would fail because vLLM is missing. For a cluster with its own command this is not known."""
    if settings.VLLM_ENVIRONMENT is None or not _starts_vllm(config):
        return False
    return not _made() and find_spec("vllm") is None


def _starts_vllm(config: Mapping[str, Any]) -> bool:
    """Whether the run starts vLLM itself. A server runs elsewhere, and calling it needs no vLLM."""
    return bool(config.get("sampler", {}).get("kind") == "vllm")


def _made() -> bool:
    """`make vllm` leaves this mark once everything is installed."""
    made = settings.VLLM_ENVIRONMENT
    return made is not None and any(made.glob(".installed-*"))

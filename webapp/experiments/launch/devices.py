"""The device on which a run would be, before the launch: as far as it is known here, without torch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from trainer.config import FieldProblem
from trainer.devices import CHOICE, built_for_cuda, cards, idle, on_purpose
from webapp.core.distributed import cluster

from ..lifecycle.commands import trainer_command


@dataclass(frozen=True)
class Expected:
    """The device, in words, and how it is known."""

    value: str
    how: str


def expected() -> Expected:
    """The expected device. After the launch, the page of a run shows the real one."""
    if _elsewhere():
        there = cluster.last_state()
        if there is None:
            return Expected("not known yet", "the Ray cluster has not said what it has")
        card = there.best_card
        name = card.card if card and card.card else "a GPU"
        return (
            Expected(name, "of the Ray cluster") if there.gpus else Expected("processors", "the Ray cluster has no GPU")
        )
    found, why = cards(), on_purpose()
    if not found:
        return Expected("the processor", "this machine has no NVIDIA GPU")
    return (
        Expected("the processor", why)
        if why
        else Expected(found[0], "responses are sampled there, too, unless a server does")
    )


def problems(config: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Problems that would leave this machine's card idle without a decision of the user. A cluster of the user's own is not known."""
    if _elsewhere():
        return
    found = cards()
    apart = trainer_command(config) != settings.TRAINER_COMMAND
    if apart and found and not on_purpose():
        yield FieldProblem(
            "sampler.kind",
            f"vLLM was installed for the processor (`make vllm`), where learner and sampler would leave {found[0]} idle: run "
            f"`make gpu`, or set {CHOICE}=cpu to do so on purpose",
        )
    elif not apart and (why := idle(found, built_for_cuda())):
        yield FieldProblem("model.name", why)


def _elsewhere() -> bool:
    return bool(settings.ENV.trainer_command or settings.ENV.ray_address)

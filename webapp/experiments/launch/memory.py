"""The memory that a run will need, for the launch form and for the check before the queue."""

from dataclasses import dataclass
from functools import cached_property

from trainer.config import FieldProblem, RecipeConfig
from trainer.memory.advice import advice, cache_problem, problem
from trainer.memory.forecast import Device, Forecast, MemoryPart, Process, forecast
from trainer.memory.shape import GIB, ModelShape, ShapeUnknown
from webapp.core.distributed import cluster
from webapp.inference.folders.shapes import shape_of
from webapp.inference.models import RegisteredModel

from ..lifecycle import resources

TURNS = {"": "", "sampling": "while sampling", "gradients": "while training", "update": "while updating"}


@dataclass(frozen=True)
class ForecastRow:
    """A part of the memory of a process. `counts`: it is in use at the peak."""

    label: str
    size: str
    how: str
    counts: bool


@dataclass(frozen=True)
class ShownForecast:
    """A forecast in words. `unknown` says why there is none; `warning` what may happen if the run does not fit and is launched anyway."""

    found: Forecast | None = None
    unknown: str = ""
    warning: str = ""

    @property
    def total(self) -> str:
        return _size(self.found.needed) if self.found else ""

    @property
    def there(self) -> str:
        """The available memory; empty if it is not known."""
        device = self.found.device if self.found else None
        return f"{_size(device.memory)} of {device.name}" if device else ""

    @property
    def fits(self) -> bool:
        return self.found is None or self.found.fits

    @cached_property
    def processes(self) -> list[tuple[str, list[ForecastRow]]]:
        """The processes by label; a process that runs several times says how often."""
        return [(_label(each), _rows(each)) for each in self.found.processes] if self.found else []


def shown_forecast(config: RecipeConfig, model: RegisteredModel | None) -> ShownForecast:
    """The forecast for a valid config."""
    if model is None:
        return ShownForecast(unknown="choose a model first")
    try:
        shape = shape_of(model)
        found = forecast(config, shape, device())
        return ShownForecast(found, warning=_warning(config, shape, found) if found.possible else "")
    except ShapeUnknown as error:
        return ShownForecast(unknown=str(error))


def problems(config: RecipeConfig, model: RegisteredModel) -> list[FieldProblem]:
    """Problems if the run certainly does not fit into the cluster's memory, at the first field that would help; none if either is unknown."""
    try:
        shape = shape_of(model)
    except ShapeUnknown:
        return []
    if why := cache_problem(config, shape):
        return [FieldProblem("sampler.kv_cache_gb", why)]
    there = device()
    found = forecast(config, shape, there)
    if there is None or found.possible:
        return []
    changes = advice(config, shape, there)
    return [FieldProblem(changes[0].path if changes else "model.name", problem(found, changes))]


def warning(config: RecipeConfig, model: RegisteredModel) -> str:
    """The risk of a run that is not refused and does not fit by the forecast, which can be wrong; empty if it fits, or if that is not
    known."""
    try:
        shape = shape_of(model)
    except ShapeUnknown:
        return ""
    return _warning(config, shape, forecast(config, shape, device()))


def _warning(config: RecipeConfig, shape: ModelShape, found: Forecast) -> str:
    if found.device is None or found.fits:
        return ""
    alone = (
        "It starts once no other run or job has memory, and runs alone. It" if _alone(config, found.needed) else "It"
    )
    why = problem(found, advice(config, shape, found.device)).rstrip(".")
    return f"By the forecast, {why}. You can launch it all the same, because a forecast can be wrong. {alone} may end for lack of memory"


def _alone(config: RecipeConfig, needed: int) -> bool:
    """Whether the line lets a run that needs this much run alone: it counts the forecast only if the config reserves no memory, and
    compares it with the memory of all machines."""
    lends = resources.of_cluster().memory_bytes
    return resources.expects_memory() and not config.resources.memory_gb and 0 < lends <= needed


def on_processors(config: RecipeConfig, model: RegisteredModel) -> int | None:
    """Bytes of all processes of the run on a machine without GPUs; None if the shape of the model is not known here."""
    try:
        return forecast(config, shape_of(model), None).needed
    except ShapeUnknown:
        return None


def device() -> Device | None:
    """The device on which the cluster would put a run: a GPU if it has some, else its largest machine. None if it is not known."""
    there = cluster.last_state()
    if there is None:
        return None
    if there.gpus:
        card = there.best_card
        return Device("gpu", card.card_memory, card.card) if card else None
    machine = there.best_machine
    return Device("cpu", machine.memory, "the cluster's largest machine") if machine else None


def _rows(process: Process) -> list[ForecastRow]:
    return [
        ForecastRow(part.label, _size(part.bytes), _how(part), part.turn in ("", process.worst))
        for part in process.parts
        if part.bytes
    ]


def _how(part: MemoryPart) -> str:
    return f"{part.how}, {TURNS[part.turn]}" if part.turn else part.how


def _label(process: Process) -> str:
    return f"{process.label} (× {process.count})" if process.count > 1 else process.label


def _size(number: int) -> str:
    if number >= GIB:
        return f"{number / GIB:.1f} GiB"
    return f"{number / 2**20:.0f} MiB" if number >= 2**20 else f"{number / 2**10:.0f} KiB"

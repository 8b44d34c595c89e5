"""Exporters: one module per family of layouts, one plain registry.

To add one: write a module with `EXPORTERS` and name it in `_MODULES`; the API, the page and the tests follow.
"""

from .base_exporter import Exporter
from .environments import write as environments
from .healthbench import write as healthbench
from .rubricbench import write as rubricbench
from .touchstone import write as touchstone
from .trainers import write as trainers

__all__ = ["NATIVE", "REGISTRY", "Exporter", "named"]

NATIVE = touchstone.NATIVE
_MODULES = (touchstone, trainers, healthbench, rubricbench, environments)
REGISTRY: dict[str, Exporter] = {exporter.name: exporter for module in _MODULES for exporter in module.EXPORTERS}


def named(format: str) -> Exporter | None:
    """The exporter of this name; `native` is another name for our own format."""
    return REGISTRY.get(NATIVE.name if format == "native" else format)

"""Exporters: one module per family of layouts, one plain registry.

To add one: write a module with `EXPORTERS` and name it in `_MODULES`; the API, the page and the tests follow.
"""

from . import healthbench, native, rubricbench, training
from .base import Exporter

__all__ = ["NATIVE", "REGISTRY", "Exporter", "named"]

NATIVE = native.NATIVE
_MODULES = (native, training, healthbench, rubricbench)
REGISTRY: dict[str, Exporter] = {exporter.name: exporter for module in _MODULES for exporter in module.EXPORTERS}


def named(format: str) -> Exporter | None:
    """The exporter of this name; `native` is another name for our own format."""
    return REGISTRY.get(NATIVE.name if format == "native" else format)

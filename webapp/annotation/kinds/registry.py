"""Every kind of task: the modules of this folder that have a `KIND`, in the order of the gallery."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .base import TaskKind

_NOT_KINDS = {"registry"}  # this module, which is being imported


def _found() -> dict[str, TaskKind]:
    names = [each.name for each in iter_modules([str(Path(__file__).parent)]) if each.name not in _NOT_KINDS]
    modules = [import_module(f"{__package__}.{name}") for name in names]
    found: list[TaskKind] = [module.KIND for module in modules if hasattr(module, "KIND")]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.place)}


KINDS: Mapping[str, TaskKind] = _found()
COMPARING = tuple(name for name, kind in KINDS.items() if kind.compares)  # whose answers become comparisons


def get_kind(name: str) -> TaskKind:
    """The kind of this name. Raises KeyError for an unknown name."""
    return KINDS[name]

"""Imports of modules of W&B, such as `wandb.sdk.lib.config_util`, by other packages of a program that has said
`sys.modules["wandb"] = touchstone.wandb`."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .unsupported import standing_for
from .wandb_config import Error

OURS = f"{__package__}.wandb"


class Finder:
    """Finds modules below `wandb` while touchstone.wandb is in its place. What they lack stands for something that does nothing."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        ours = sys.modules.get("wandb")
        if ours is None or ours is not sys.modules.get(OURS) or not name.startswith("wandb."):
            return None
        return ModuleSpec(name, cls, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        ours, inside = vars(sys.modules[OURS]), module.__name__.removeprefix("wandb.")
        before = ours.get(inside)  # of the same name, such as `errors`

        def found(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if before is not None and hasattr(before, name):
                return getattr(before, name)
            if name in ours:
                return ours[name]
            return Error if name.endswith(("Error", "Exception")) else standing_for(f"wandb.{inside}.{name}")

        module.__getattr__ = found  # type: ignore[method-assign]


def install() -> None:
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)

"""The pure functions of rewards, judges and curricula on numbers from a file: `python -m trainer formula NAME FILE.json`. Torch-free."""

from .base import Formula, InputInvalid, Undefined
from .registry import FORMULAS

__all__ = ["FORMULAS", "Formula", "InputInvalid", "Undefined"]

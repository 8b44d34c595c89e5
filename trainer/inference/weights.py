"""The type of a model's weights by name, for modules that pass weights on and do not need torch."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Weights = Mapping[str, "Tensor"]

"""From responses to rewards: parts of every kind (judges, models, services, verifiers) and their composition. Torch-free."""

from .composition import Composed, compose, exclusions
from .kinds.texts import overlong_penalty
from .parts import Item, Part, Services, Unscored

__all__ = [
    "Composed",
    "Item",
    "Part",
    "Services",
    "Unscored",
    "compose",
    "exclusions",
    "overlong_penalty",
]

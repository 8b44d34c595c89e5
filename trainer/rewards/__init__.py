"""The rewards of responses: parts of every kind (judges, models, services, verifiers) and their composition. It needs no torch."""

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

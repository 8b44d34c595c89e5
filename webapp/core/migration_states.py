"""Faster migrations. Between two migrations Django makes the models again, and each of their fields by its constructor, from what the field
tells of itself. That is half of the time that migrating an empty database takes. Such a field belongs to no model yet, so a copy is the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from django.db.models import Field

_constructed: Any = Field.clone
DJANGO = "django.db.models.fields"  # its fields hold nothing that changes when a model takes them, besides what their copy has for itself


@contextmanager
def copied_fields() -> Iterator[None]:
    """For the time of migrations. Nothing else may use the models of migrations meanwhile, so it is for processes that only migrate."""
    Field.clone = _copied  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Field.clone = _constructed  # type: ignore[method-assign]


def _copied(field: Any) -> Any:
    if hasattr(field, "model") or not type(field).__module__.startswith(DJANGO):
        return _constructed(field)
    made = deepcopy(field)  # Field.__deepcopy__: what it says of a related model is copied, and nothing else
    made.__dict__.pop("_get_default", None)  # who takes the copy may change its default
    if made.auto_created:
        made.creation_counter = Field.auto_creation_counter
        Field.auto_creation_counter -= 1
    else:  # models have their fields in the order in which these were made
        made.creation_counter = Field.creation_counter
        Field.creation_counter += 1
    return made

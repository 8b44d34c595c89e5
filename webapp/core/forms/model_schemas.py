"""The JSON schemas of configs. Pydantic takes longer to make one than a page takes to draw its form, and a class has only one."""

import json
from functools import cache
from typing import Any

from pydantic import BaseModel


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """`model.model_json_schema()`, the caller's own to change: forms put its defaults into what they edit."""
    found: dict[str, Any] = json.loads(_written(model))
    return found


@cache
def _written(model: type[BaseModel]) -> str:
    return json.dumps(model.model_json_schema())

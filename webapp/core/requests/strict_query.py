"""Query parameters that an operation of the API does not have are an error: a misspelt filter must not show everything."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.operation import Operation
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from ..problems import Invalid

Run = Callable[..., Any]


def known_query(run: Run) -> Run:
    """Decorator of every operation (`api.add_decorator(known_query, mode="view")`): 422 with the names that it does not take.

    It looks after the caller is known and before anything else is read, so the response is the same if other things are wrong too.
    """
    operation: Operation = run.__self__  # type: ignore[attr-defined]  # a bound method: what ninja hands to decorators
    names = {name for model in operation.models if _of_the_address(model) for name in model.__ninja_flatten_map__}
    read = operation._get_values

    def checked(request: HttpRequest, path_params: Any, temporal_response: HttpResponse) -> dict[str, Any]:
        unknown = sorted(set(request.GET) - names)
        if unknown:
            reason = {name[:80]: "is not a parameter of this address; see /api/v1/docs" for name in unknown[:20]}
            raise Invalid("The address has unknown parameters.", reason)
        return read(request, path_params, temporal_response)

    operation._get_values = checked  # type: ignore[method-assign]
    return run


def _of_the_address(model: Any) -> bool:
    return bool(model.__ninja_param_source__ == "query")


@dataclass(frozen=True)
class OneOf:
    """`Annotated[str, OneOf(State.values)]`: a parameter that takes these values alone, and says so in the document."""

    values: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.values))

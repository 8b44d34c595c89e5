"""Query parameters that an operation of the API does not have are an error: a misspelt filter must not show everything."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

from django.http import HttpRequest
from ninja import Schema

from .problems import Invalid

View = Callable[..., Any]
NEVER = frozenset({"request", "payload"})  # of a view, what never stands in an address


def known_query(view: View) -> View:
    """Decorator of an operation (`router.add_decorator(known_query)`): 422 with the names that it does not take."""
    names = {each for name, parameter in inspect.signature(view).parameters.items() for each in _names(name, parameter)}

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        in_path = request.resolver_match.kwargs if request.resolver_match else {}
        unknown = sorted(set(request.GET) - names.difference(in_path, NEVER))
        if unknown:
            reason = {name[:80]: "is no parameter of this address; see /api/v1/docs" for name in unknown[:20]}
            raise Invalid("The address has parameters that are not known here.", reason)
        return view(request, *args, **kwargs)

    return checked


def _names(name: str, parameter: inspect.Parameter) -> set[str]:
    """What the parameter is called in the address; of a schema, the names of its fields."""
    annotated = get_origin(parameter.annotation) is Annotated
    kind, *notes = get_args(parameter.annotation) if annotated else (parameter.annotation,)
    if inspect.isclass(kind) and issubclass(kind, Schema):
        return set(kind.model_fields)
    return {next((str(note.alias) for note in notes if getattr(note, "alias", None)), name)}

"""A run that somebody has deleted while a request worked on it is not there: not an error of the server."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.http import Http404

from ..models import Run

Given = ParamSpec("Given")
Result = TypeVar("Result")


def unless_deleted(change: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorator of a change to a run: raises Http404 if its row is gone."""

    @wraps(change)
    def _change(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return change(*args, **kwargs)
        except Run.DoesNotExist as error:
            raise Http404("no such run") from error

    return _change

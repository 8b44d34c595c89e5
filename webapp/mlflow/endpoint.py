"""Admits requests of MLflow's tracking protocol by an API token, as its areas and its person's role allow. Errors have MLflow's form."""

import json
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from pydantic import BaseModel, ValidationError

from webapp.accounts import areas
from webapp.accounts.areas import Area, Need, Right
from webapp.accounts.authentication.credentials import authenticate
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.database.nul_characters import show_nul
from webapp.core.health import DATABASE_AWAY
from webapp.core.problems import Problem
from webapp.core.requests.authorization import bearer_token
from webapp.core.requests.limits import TooMany, seconds_to_wait

logger = logging.getLogger(__name__)
LARGEST = 2_000_000  # bytes of a body; MLflow's client sends at most half of it at once
LISTS = ("order_by", "stages")  # parameters that may come several times
STRANGERS_PER_MINUTE = 60  # from one address, without a token that opens
Read = TypeVar("Read", bound=BaseModel)
View = Callable[..., HttpResponseBase]
CODES = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    409: "INVALID_STATE",
    413: "INVALID_PARAMETER_VALUE",
    429: "REQUEST_LIMIT_EXCEEDED",
    503: "TEMPORARILY_UNAVAILABLE",
}


class MlflowError(Exception):
    """An answer in MLflow's form."""

    def __init__(self, message: str, code: str = "INVALID_PARAMETER_VALUE", status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def mlflow_view(method: str | None, right: Right) -> Callable[[View], View]:
    """Decorates a view that takes one method (None: any), and whose second argument is the membership that the token opens."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @login_not_required
        @never_cache
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                if method and request.method != method:
                    raise MlflowError(f"This address takes {method}.", "BAD_REQUEST", 405)
                return view(request, _membership(request, right), *args, **kwargs)
            except Exception as error:
                return _answer(request, error)

        return guarded

    return decorate


def by_method(**views: View) -> View:
    """One view for an address at which each method does something else."""

    def found(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return views.get(request.method or "", next(iter(views.values())))(request, *args, **kwargs)

    found.csrf_exempt = True  # type: ignore[attr-defined]  # the views behind it ask for a token, and no browser has one
    found.login_required = False  # type: ignore[attr-defined]
    return found


def _membership(request: HttpRequest, right: Right) -> Membership:
    secret, need = bearer_token(request.headers.get("Authorization")), Need(Area.EXPERIMENTS, right)
    found = authenticate(request, secret, lambda held: areas.check(held, need)) if secret else None
    if found is None:
        if wait_s := seconds_to_wait(f"mlflow:{audit.origin.get().address}", STRANGERS_PER_MINUTE):
            raise TooMany(wait_s)
        raise MlflowError("Send an API token of Touchstone: set MLFLOW_TRACKING_TOKEN.", "UNAUTHENTICATED", 401)
    return found


def _answer(request: HttpRequest, error: Exception) -> HttpResponse:
    if isinstance(error, MlflowError):
        return error_response(error.status, error.code, str(error))
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return error_response(400, CODES[400], f"{where}: {first['msg'].removeprefix('Value error, ')}")
    if isinstance(error, TooMany):
        answer = error_response(429, CODES[429], error.message)
        answer["Retry-After"] = str(error.wait_s)
        return answer
    if isinstance(error, Problem):
        status = {422: 400}.get(error.status, error.status)
        code = "RESOURCE_LIMIT_EXCEEDED" if error.code == "over_quota" else CODES.get(status, "INVALID_STATE")
        return error_response(403 if error.code == "over_quota" else status, code, _words(error))
    if isinstance(error, Http404):
        return error_response(404, CODES[404], "There is nothing with this id here, or you may not see it.")
    if isinstance(error, PermissionDenied):
        return error_response(403, CODES[403], str(error))
    if isinstance(error, RequestDataTooBig):
        return error_response(413, CODES[413], f"A body has at most {LARGEST:,} bytes.")
    if isinstance(error, DataError):
        logger.info("refused a value the database cannot hold: %s", error)
        return error_response(
            400, CODES[400], "A value is too small or too large, or has characters that cannot be stored."
        )
    if isinstance(error, DATABASE_AWAY):
        logger.error("the database does not answer: %s", error)
        return error_response(503, CODES[503], "The database does not answer. Try again.")
    logger.exception("error %s in %s %s", getattr(request, "id", ""), request.method, request.path, exc_info=error)
    return error_response(
        500, "INTERNAL_ERROR", f"An error happened on the server. Quote {getattr(request, 'id', '')} in a report."
    )


def _words(problem: Problem) -> str:
    return " ".join([problem.message, *(f"{where}: {why}." for where, why in problem.fields.items())])


def error_response(status: int, code: str, message: str) -> HttpResponse:
    answer = JsonResponse({"error_code": code, "message": message}, status=status)
    if status == 401:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


def read_body(request: HttpRequest, kind: type[Read]) -> Read:
    """The JSON body. Raises Refused, ValidationError."""
    if len(request.body) > LARGEST:
        raise MlflowError(f"A body has at most {LARGEST:,} bytes; send less at once.", status=413)
    try:
        parsed = json.loads(show_nul(request.body) or b"{}")
        json.dumps(parsed, ensure_ascii=False).encode()  # half a pair of surrogates is not text
    except (ValueError, RecursionError):
        raise MlflowError("The body is not JSON.", "BAD_REQUEST") from None
    return kind.model_validate(parsed)


def read_query(request: HttpRequest, kind: type[Read]) -> Read:
    """The parameters of the address, checked. Raises ValidationError."""
    return kind.model_validate({name: values if name in LISTS else values[-1] for name, values in request.GET.lists()})


def json_response(content: Mapping[str, Any] | None = None) -> HttpResponse:
    return JsonResponse(dict(content or {}))

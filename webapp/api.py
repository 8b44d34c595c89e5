"""The REST API: who may call it, how errors look, and the routers of every app."""

import json
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, RawPostDataException, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser
from ninja.types import DictStrAny

from trainer.config.errors import ConfigInvalid
from trainer.product import NAME
from webapp.accounts import areas
from webapp.accounts.api import router as accounts
from webapp.accounts.authentication.credentials import SessionAuth, TokenAuth
from webapp.annotation.api import routers as annotation
from webapp.core.api import router as installation
from webapp.core.forms.error_messages import error_text
from webapp.core.health import DATABASE_AWAY
from webapp.core.problems import UNNAMED, Problem, error_body
from webapp.core.requests.limits import TooMany
from webapp.core.requests.openapi import DescribedAPI
from webapp.core.requests.strict_query import known_query
from webapp.core.views import RETRY_AFTER_S
from webapp.costs.api import router as costs
from webapp.datasets.api import router as datasets
from webapp.evaluation.api import router as evaluations
from webapp.experiments.api import router as experiments
from webapp.experiments.claims.api import router as claims
from webapp.experiments.ingest.api import router as ingest
from webapp.experiments.sharing.api import router as sharing
from webapp.experiments.sweeps.api import router as sweeps
from webapp.experiments.table.api import router as runs_table
from webapp.experiments.table.compare_api import router as runs_compared
from webapp.identity.api import router as identity
from webapp.inference.api import router as models
from webapp.inference.endpoints.api import router as endpoints
from webapp.judging.api import router as judges
from webapp.lineage.api import router as lineage
from webapp.needs_api import router as needs
from webapp.notices.api import router as notices
from webapp.personal_data.api import router as personal_data
from webapp.playground.api import router as playground
from webapp.reports.api import router as reports
from webapp.reports.sharing.api import router as report_links
from webapp.verifiers.api import router as verifiers
from webapp.webhooks.api import router as webhooks
from webapp.weights.api import router as weights
from webapp.weights.ingest import router as weights_ingest

logger = logging.getLogger(__name__)
FORMS = re.compile(r"(constrained-)?(int|str|float|bool)|function-.*|[A-Z]\w*|.*\[.*")


class StrictParser(Parser):
    """JSON as the standard has it, and as Postgres can store it: no NaN or Infinity, no NUL, no lone surrogates."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        body = request.body
        parsed: DictStrAny = json.loads(body, parse_constant=self._refuse)
        if b"\\u" in body:
            text = json.dumps(parsed, ensure_ascii=False)
            text.encode()  # a lone surrogate raises here, before it reaches the database
            if "\\u0000" in text.replace("\\\\", ""):
                raise ValueError("NUL in a string")
        return parsed

    @staticmethod
    def _refuse(name: str) -> float:
        raise ValueError(f"{name} is not JSON")


class PlacedAPI(DescribedAPI):
    """Adds to each operation what it needs of a token, as `x-token-needs`."""

    def document(self, prefix: str) -> OpenAPISchema:
        schema = super().document(prefix)
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                with suppress(areas.Unplaced):  # opened by another key: see `ingest`
                    if need := areas.right_needed(method.upper(), path):
                        operation.setdefault("x-token-needs", str(need))
        return schema


api = PlacedAPI(
    title=NAME,
    version="1",
    description="Everything the pages can do. Send `Authorization: Bearer ts_...`; create a token under Settings.",
    auth=[TokenAuth(), SessionAuth()],
    parser=StrictParser(),
    docs_url=None,  # drawn by webapp.reference: the bundled page needs inline scripts, which the CSP forbids
)


def error(
    request: HttpRequest,
    status: int,
    code: str,
    message: str,
    fields: list[dict[str, str]] | None = None,
    extra: dict[str, object] | None = None,
) -> HttpResponse:
    """An error response. `extra` is what a program needs to recover, such as the draft that is stored now."""
    return api.create_response(request, error_body(request, code, message, fields) | (extra or {}), status=status)


@api.exception_handler(ValidationError)
def _fields(request: HttpRequest, exc: ValidationError) -> HttpResponse:
    fields = [{"path": path, "message": message} for path, message in _refused(exc.errors, _body(request)).items()]
    return error(request, 422, "invalid", "The request does not have the expected form.", fields)


def _body(request: HttpRequest) -> object:
    """The JSON of the request; None if it sent none."""
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError, RawPostDataException):
        return None


def _refused(errors: list[DictStrAny], body: object) -> dict[str, str]:
    """Path -> why, in plain words. Of a value that may have several forms, the form to which its content comes nearest is told, or all."""
    found: dict[str, list[str]] = {}
    for each in errors:
        told = found.setdefault(_path(each["loc"], body), [])
        if (words := error_text(each)) not in told:
            told.append(words)
    deeper = {path.rpartition(".")[0] for path in found}
    return {path: _one_of(told) for path, told in found.items() if len(told) == 1 or path not in deeper}


def _one_of(told: list[str]) -> str:
    """The requirement on a value with several forms: `must be a whole number, or a text`."""
    first, *others = told
    return ", or ".join([first, *(words.removeprefix("must be ") for words in others)])


def _path(loc: tuple[str | int, ...], body: object) -> str:
    """`("body", "payload", "config", "lr")` -> `config.lr`: leaves out the location, the name of our parameter, and pydantic's names for the
    forms that a value may have (`str`, `DatasetIn`). A key of the body that looks like one stays."""
    inside = bool(loc) and loc[0] == "body"
    found, here = [], body if inside else None
    for part in loc[2:] if inside else loc[1:]:
        there = isinstance(here, dict) and part in here
        if there or isinstance(part, int) or not FORMS.fullmatch(part):
            found.append(str(part))
            here = _within(here, part)
    return ".".join(found)


def _within(value: object, part: str | int) -> object:
    """The part of the value at this key or place; None if it has nothing there."""
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None


@api.exception_handler(ConfigInvalid)
def _config(request: HttpRequest, exc: ConfigInvalid) -> HttpResponse:
    fields = [{"path": p.path, "message": p.message} for p in exc.problems]
    return error(request, 422, "invalid_config", "The config cannot be used.", fields)


@api.exception_handler(Problem)
def _problem(request: HttpRequest, exc: Problem) -> HttpResponse:
    fields = [{"path": path, "message": message} for path, message in exc.fields.items()]
    response = error(request, exc.status, exc.code, exc.message, fields, exc.extra)
    if isinstance(exc, TooMany):
        response["Retry-After"] = str(exc.wait_s)
    return response


@api.exception_handler(AuthenticationError)
def _unknown(request: HttpRequest, exc: AuthenticationError) -> HttpResponse:
    response = error(request, 401, "not_signed_in", "Send a valid token: `Authorization: Bearer ts_...`.")
    response["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(HttpError)
def _http(request: HttpRequest, exc: HttpError) -> HttpResponse:
    codes = {400: "bad_request", 401: "not_signed_in", 403: "forbidden", 404: "not_found", 409: "conflict"}
    return error(request, exc.status_code, codes.get(exc.status_code, "error"), str(exc))


@api.exception_handler(PermissionDenied)
def _denied(request: HttpRequest, exc: PermissionDenied) -> HttpResponse:
    return error(request, 403, "forbidden", str(exc) or UNNAMED[403][1])


@api.exception_handler(Http404)
def _missing(request: HttpRequest, exc: Http404) -> HttpResponse:
    named = str(exc) if str(exc).startswith("no such ") else "nothing"
    return error(request, 404, "not_found", f"There is {named} here, or you may not see it.")


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, exc: RequestDataTooBig) -> HttpResponse:
    return error(request, 413, "too_big", "The body is larger than this endpoint accepts.")


def _unreadable(request: HttpRequest, exc: Exception) -> HttpResponse:
    logger.info("a body that cannot be read: %s", exc)
    return error(request, 400, "bad_request", "The body of the request cannot be read.")


def _unstorable(request: HttpRequest, exc: Exception) -> HttpResponse:
    # a number beyond the column's range, a NUL, a lone surrogate: bad input that was found late
    logger.info("refused a value the database cannot hold: %s", exc)
    return error(request, 422, "invalid", "A value is too small or too large, or has characters that cannot be stored.")


def _away(request: HttpRequest, exc: Exception) -> HttpResponse:
    logger.error("the database does not answer: %s", exc)
    response = error(request, 503, *UNNAMED[503])
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _catch(handler: Callable[[HttpRequest, Any], HttpResponse], *errors: type[Exception]) -> None:
    for kind in errors:
        api.add_exception_handler(kind, handler)


@api.exception_handler(ValueError)
def _value(request: HttpRequest, exc: ValueError) -> HttpResponse:
    if isinstance(exc, UnicodeEncodeError) or "NUL" in str(exc):
        return _unstorable(request, exc)
    return _bug(request, exc)


@api.exception_handler(Exception)
def _bug(request: HttpRequest, exc: Exception) -> HttpResponse:
    logger.exception("error %s in %s %s", getattr(request, "id", ""), request.method, request.path, exc_info=exc)
    return error(request, 500, *UNNAMED[500])


_catch(_unstorable, DataError)
_catch(_unreadable, MultiPartParserError, BadRequest, SuspiciousOperation, UnreadablePostError)
_catch(_away, *DATABASE_AWAY)
ROUTERS = (
    *annotation,
    accounts,
    identity,
    webhooks,
    datasets,
    models,
    verifiers,
    endpoints,
    judges,
    evaluations,
    runs_compared,
    runs_table,  # before the runs: otherwise its addresses would be read as ids of runs
    experiments,
    claims,
    sweeps,
    sharing,
    ingest,
)
api.add_decorator(known_query, mode="view")
for router in (
    *ROUTERS,
    lineage,
    costs,
    needs,
    notices,
    reports,
    report_links,
    playground,
    weights,
    weights_ingest,
    installation,
    personal_data,
):
    api.add_router("", router)

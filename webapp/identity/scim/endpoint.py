"""The entry of the SCIM service: the directory's key, rate limits, body sizes, and errors in the protocol's format."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from pydantic import ValidationError
from scim2_models import Context, Error, InvalidSyntaxException, PayloadTooLargeException, SCIMException

from webapp.accounts.models import hash_secret
from webapp.core.auditing import audit
from webapp.core.database.nul_characters import show_nul
from webapp.core.problems import Problem
from webapp.core.requests.authorization import bearer_token
from webapp.core.requests.limits import TooMany, seconds_to_wait
from webapp.identity.models import Directory, DirectoryKey

from .resources import POLICY

REQUESTS_PER_MINUTE = 1500  # of one directory; Entra asks for 25 a second
STRANGERS_PER_MINUTE = 60  # from one address, without a key that opens
LARGEST = 1_000_000  # bytes of a body
View = Callable[..., HttpResponse]


def scim_view(view: View) -> View:
    """Decorates a view of the service, which gets the directory of the request's key as its second argument."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            directory = _directory(request)
            if directory is None:
                answer = _error(401, "", "A key of a directory opens this service.")
                answer["WWW-Authenticate"] = 'Bearer realm="SCIM"'
                return answer
            with POLICY:
                return view(request, directory, *args, **kwargs)
        except SCIMException as error:
            return _error(error.status, error.scim_type, error.detail)
        except ValidationError as error:
            first = Error.from_validation_errors(error)[0]
            return _error(first.status or 400, first.scim_type or "", first.detail or "The request cannot be read.")
        except IntegrityError:  # another request was first
            return _error(409, "uniqueness", "Another resource has this name.")
        except TooMany as problem:
            answer = _error(429, "", problem.message)
            answer["Retry-After"] = str(problem.wait_s)
            return answer
        except Problem as problem:
            known = {409: "uniqueness", 422: "invalidValue"}
            return _error(
                400 if problem.status == 422 else problem.status, known.get(problem.status, ""), problem.message
            )

    return guarded


def scim_response(body: dict[str, Any], status: int = 200, version: str = "", location: str = "") -> HttpResponse:
    answer = HttpResponse(json.dumps(body), status=status, content_type="application/scim+json")
    if version:
        answer["ETag"] = version
    if location:
        answer["Location"] = location
    return answer


def json_body(request: HttpRequest) -> dict[str, Any]:
    """Raises PayloadTooLargeException, InvalidSyntaxException."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > min(LARGEST, settings.DATA_UPLOAD_MAX_MEMORY_SIZE):
        raise PayloadTooLargeException(detail=f"A body has at most {LARGEST} bytes.")
    if len(request.body) > LARGEST:
        raise PayloadTooLargeException(detail=f"A body has at most {LARGEST} bytes.")
    try:
        payload = json.loads(show_nul(request.body))
        json.dumps(payload, ensure_ascii=False).encode()  # half a pair of surrogates is not text
    except (ValueError, RecursionError) as error:
        raise InvalidSyntaxException(detail="The body is not JSON.") from error
    if not isinstance(payload, dict):
        raise InvalidSyntaxException(detail="The body is not a JSON object.")
    return payload


def _directory(request: HttpRequest) -> Directory | None:
    """Raises TooMany."""
    secret = bearer_token(request.headers.get("Authorization"))
    found = DirectoryKey.objects.filter(digest=hash_secret(secret), revoked_at=None)
    key = found.select_related("directory").first() if secret else None
    who, most = (f"directory:{key.directory_id}", REQUESTS_PER_MINUTE) if key else (_stranger(), STRANGERS_PER_MINUTE)
    if wait_s := seconds_to_wait(who, most):
        raise TooMany(wait_s)
    if key is None:
        return None
    _touch(key)
    audit.origin.set(replace(audit.origin.get(), token=key.prefix))
    return key.directory


def _stranger() -> str:
    return f"scim:{audit.origin.get().address}"


def _touch(key: DirectoryKey) -> None:
    """Notes the use of the key to the minute: one write a minute, not one a request."""
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > timedelta(minutes=1):
        DirectoryKey.objects.filter(pk=key.pk).update(last_used_at=now)


def _error(status: int, scim_type: str, detail: str) -> HttpResponse:
    told = Error(status=status, scim_type=scim_type or None, detail=detail)
    return scim_response(told.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE), status)

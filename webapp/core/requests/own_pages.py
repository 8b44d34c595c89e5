"""Addresses in requests to which a person is sent back."""

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def own_page(request: HttpRequest, target: str | None) -> str:
    """The target if it is the path of a page of this installation, else empty.

    A target without a slash at its start is none: `redirect` would take it for the name of a view.
    """
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if target and safe and target.startswith("/") else ""

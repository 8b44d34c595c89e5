"""A Touchstone server from Python: it speaks the server's API over HTTP and needs none of the server's code.

`Server` and its errors are loaded when they are first used, so that a program which imports only this package loads no HTTP client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .http import ApiError, Away
    from .server import Server

__all__ = ["ApiError", "Away", "Server"]
_MODULES = {"ApiError": "http", "Away": "http", "Server": "server"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

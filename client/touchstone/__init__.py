"""A Touchstone server from Python: it speaks the server's API over HTTP and needs none of the server's code."""

from .http import ApiError, Away
from .server import Server

__all__ = ["ApiError", "Away", "Server"]

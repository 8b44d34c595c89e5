"""A Touchstone server from Python: it speaks the server's API over HTTP and needs none of the server's code."""

from .http import ApiError, Away, Server
from .types import Artifact, Point, Run

__all__ = ["ApiError", "Artifact", "Away", "Point", "Run", "Server"]

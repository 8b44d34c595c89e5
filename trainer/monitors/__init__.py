"""Events of a run: on disk first, then to the server and the terminal."""

from .console import Console
from .monitor import RunMonitor
from .sink import Command, HttpSink
from .spool import Spool

__all__ = ["Command", "Console", "HttpSink", "RunMonitor", "Spool"]

"""Events of a run: on disk first, then to the server and the terminal."""

from .console import Console
from .monitor import Records, RunMonitor
from .sink import Command, HttpSink
from .spool import Spool
from .worker_thread import LeftUndone

__all__ = ["Command", "Console", "HttpSink", "LeftUndone", "Records", "RunMonitor", "Spool"]

"""Events of a run: on disk first, then to the server and the terminal."""

from .behind import LeftUndone
from .console import Console
from .monitor import Records, RunMonitor
from .sink import Command, HttpSink
from .spool import Spool

__all__ = ["Command", "Console", "HttpSink", "LeftUndone", "Records", "RunMonitor", "Spool"]

"""Notes the end of a program that does not end its run itself: at its last line, by `sys.exit`, or by an error."""

import sys
import threading
import traceback
from typing import Any, NoReturn

ERROR = "touchstone.error"  # the tag from which the server takes why a run failed: see webapp/tracking/services.py
LONGEST = 2_000
_exit = sys.exit
_listens = False
_asked: Any = None  # what the program gave `sys.exit`; Python does not tell it to functions that run at the end


def listen() -> None:
    """From now on, what the program gives `sys.exit` is known at its end."""
    global _exit, _listens
    if not _listens:
        _exit, sys.exit, _listens = sys.exit, _noting, True


def _noting(status: Any = None, /) -> NoReturn:
    global _asked
    if threading.current_thread() is threading.main_thread():  # elsewhere it ends the thread alone
        _asked = status
    _exit(status)


def goes_on() -> None:
    """The program has caught its own `sys.exit`, and continues."""
    global _asked
    _asked = None


def at_exit() -> str:
    """The reason why the program failed; empty if it did not. An error that nobody caught leaves `sys.last_value`; so does an interactive
    program that continues."""
    error = getattr(sys, "last_value", None)
    if error is not None and not hasattr(sys, "ps1"):
        return of_error(error)
    return of_status(_asked)


def of_error(error: BaseException) -> str:
    """The error in one line, with the place in the code that raised it."""
    if isinstance(error, SystemExit):
        return of_status(error.code)
    said = " ".join("".join(traceback.format_exception_only(error)).split())
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return said[: LONGEST - len(place)] + place


def of_status(status: Any) -> str:
    """The reason why a program with this argument of `sys.exit` failed: 0 and None are success, other numbers its exit code, and all
    else is a text that Python prints before it ends with 1."""
    if status is None or (isinstance(status, int) and status == 0):
        return ""
    if isinstance(status, int):
        return f"The program ended with exit code {status}"
    return " ".join(str(status).split())[:LONGEST] or "The program ended with exit code 1"

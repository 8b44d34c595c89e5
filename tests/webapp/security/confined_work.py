"""The functions that tests run in confined children."""

import os
import time

from webapp.core.problems import Invalid


def allocate(size: int) -> int:
    return len(bytearray(size))


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def leave() -> None:
    os._exit(3)


def refuse() -> None:
    raise Invalid("No.", {"file": "is wrong"})

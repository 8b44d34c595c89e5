"""Runs the text of a program with its arguments, like `python -c`."""

import sys

if __name__ == "__main__":
    del sys.argv[0]
    exec(compile(sys.argv[0], "<program>", "exec"), {"__name__": "__main__"})  # noqa: S102  a test has written it

"""A worker of xdist: it reads the program that xdist sends, as `python -c` does in a worker that xdist starts itself. See `xdist_workers`."""

import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ctrl-C ends fixtures, too
    exec(eval(sys.stdin.readline()))  # noqa: S102, S307  the first line is the program, as in execnet's own command

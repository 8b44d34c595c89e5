"""Runs a program from its file, as Python does, in a forked process."""

import atexit
import runpy
import sys


def main(path: str) -> None:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        raise SystemExit(1 if isinstance(ended.code, str) else ended.code) from None
    finally:
        atexit._run_exitfuncs()  # MLflow's client ends its run and sends what waits; a forked process would end without it


if __name__ == "__main__":
    main(sys.argv[1])

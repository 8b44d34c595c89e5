"""Whether this Python can run Touchstone. If not, `python3 scripts/check_python.py` says in one sentence why and what to do; otherwise it says
nothing.

The Makefile asks it before anything is installed, so it must run on every Python, even a very old one.
"""

import sys

OLDEST = (3, 11, 2)  # Debian 12's
NEWEST = (3, 14)
BROKEN = ((3, 14, 1),)  # networkx, which torch needs, refuses it because of a fault that 3.14.2 mended


def incompatibility(version, implementation, command, complete):
    # type: (tuple[int, ...], str, str, bool) -> str
    """The one sentence, or an empty string.

    `version` is (major, minor, micro), `implementation` its name as in sys.implementation, `command` the name by which this Python was
    called. `complete`: it can make environments.
    """
    said = ".".join(map(str, version))
    wanted = "Touchstone needs CPython {} to {}".format(".".join(map(str, OLDEST)), ".".join(map(str, NEWEST)))
    remedy = "name another one, as in `make run PYTHON=python3.12`."
    if implementation != "cpython":
        return "{}, and {} is {}: {}".format(wanted, command, implementation, remedy)
    if version in BROKEN:
        return "{}, but {} is {}, which has a fault: {}".format(wanted, command, said, remedy)
    if version < OLDEST or version[:2] > NEWEST:
        return "{}, and {} is {}: {}".format(wanted, command, said, remedy)
    if not complete:
        package = (command if command.startswith("python3") else "python3") + "-venv"
        return "{} cannot make environments: on Debian and Ubuntu, run `apt-get install {}` as root.".format(
            command, package
        )
    return ""


def main():
    # type: () -> None
    try:
        import ensurepip  # noqa: F401  where Debian leaves it out, `venv` fails half way
        import venv  # noqa: F401

        complete = True
    except ImportError:
        complete = False
    implementation = getattr(getattr(sys, "implementation", None), "name", "cpython")
    command = sys.executable.rpartition("/")[2]
    sys.exit(incompatibility(tuple(sys.version_info[:3]), implementation, command, complete) or None)


if __name__ == "__main__":
    main()

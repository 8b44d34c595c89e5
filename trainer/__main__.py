"""`python -m trainer COMMAND ...`."""

import sys


def main(argv: list[str]) -> int:
    """Commands import what they need only when they are called: torch takes seconds."""
    if argv[:1] == ["objective"]:
        from trainer.objectives.calculator import main as objective

        return objective(argv[1:])
    print("usage: python -m trainer objective NAME FILE.json", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

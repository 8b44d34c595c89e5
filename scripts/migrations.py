"""`python -m scripts.migrations` lists the new migrations, with the digest of each.

An installation that has applied a migration never applies it again, so a listed file must never change: a change to the schema is a
new file. `tests/webapp/core/database/test_schema.py` compares the list with the files.
"""

import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "webapp" / "migrations.sha256"


def on_disk() -> dict[str, str]:
    """{path: SHA-256} of every migration."""
    files = sorted(ROOT.glob("webapp/*/migrations/[0-9]*.py"))
    return {str(file.relative_to(ROOT)): sha256(file.read_bytes()).hexdigest() for file in files}


def listed() -> dict[str, str]:
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def problems() -> list[str]:
    """The reason why the list and the files do not agree, in words."""
    there, known = on_disk(), listed()
    found = [f"{path} was changed: add a new migration instead" for path in known if there.get(path, "") != known[path]]
    return found + [f"{path} is not listed: python -m scripts.migrations" for path in there if path not in known]


def main() -> int:
    known = listed()
    if changed := [path for path, digest in known.items() if on_disk().get(path) != digest]:
        print(f"changed or gone since it was listed: {', '.join(changed)}", file=sys.stderr)
        return 1
    LIST.write_text("".join(f"{digest}  {path}\n" for path, digest in sorted((known | on_disk()).items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())

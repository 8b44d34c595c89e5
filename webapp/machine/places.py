"""Each embedded service has its folders here. Imports no Django, because settings ask before Django is ready."""

import json
import os
import stat
import tempfile
from hashlib import sha256
from pathlib import Path

RESTORING = "restoring"  # lies in a folder until its restoration from a backup is over; nothing starts on such a folder
SOCKET_PATH_LIMIT = 100  # the kernel takes 107 bytes; Postgres adds a lock file's name to its socket's


def short_dir(var: Path) -> Path:
    """A folder of our own under the temporary directory, for paths that must be short: sockets, Ray's sessions.

    The same for every process that uses this `var`. Raises PermissionError if someone else made it first: in a
    shared /tmp a folder with our name may belong to somebody else.
    """
    name = f"touchstone-{os.geteuid()}-{sha256(str(var).encode()).hexdigest()[:8]}"
    path = Path(tempfile.gettempdir()) / name
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
        raise PermissionError(f"{path} belongs to someone else; remove it or set TMPDIR to a folder of your own")
    return path


def close_to_others(var: Path) -> None:
    """Lets only the user of this process read what it and its children write from now on, and `var`: uploads, answers, keys, logs.

    Other users can pass through root's folders, but not list them, because the embedded Postgres runs as another user and has its files
    inside.
    """
    as_root = os.geteuid() == 0
    os.umask(0o066 if as_root else 0o077)
    var.mkdir(parents=True, exist_ok=True)
    var.chmod(0o711 if as_root else 0o700)


def socket_path(var: Path, name: str) -> Path:
    """`var/run/<name>`, or a short path if that is too long for a socket."""
    path = var / "run" / name
    return path if len(str(path)) <= SOCKET_PATH_LIMIT else short_dir(var) / name


def metrics_folder(var: Path) -> Path:
    """The folder in which the web processes of this machine count their responses. Not in `var`, which containers share: their processes
    have the same numbers."""
    path = short_dir(var) / "metrics"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def facts(var: Path, name: str) -> dict[str, str]:
    """The facts about a service that `manage.py up` recorded; empty if it never ran here."""
    try:
        found = json.loads((var / "run" / f"{name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_facts(var: Path, name: str, **values: str) -> None:
    """Replaces the facts in one step: a reader sees the old ones or the new ones."""
    path = var / "run" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(values))
    partial.replace(path)

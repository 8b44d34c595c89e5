"""Other tools beside ours, on this machine: each is installed from PyPI into its own environment under `var/peers/`.

If a tool cannot be installed or does not start here, it is named with the reason, and the number measured elsewhere is
shown instead.
"""

import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[2] / "var" / "peers"
INSTALL_S = 1_800
ELSEWHERE = "peer measured elsewhere"  # shown with each such number


class PeerAway(Exception):
    """The tool cannot be measured here; the message says why."""


def installed(name: str, *packages: str) -> Path:
    """The folder of the programs of a virtual environment with the packages in it, made if it is not there."""
    bin = HOME / name / "bin"
    done = HOME / name / ".installed"
    if not done.exists():
        print(f"installing {packages[0]} into {HOME / name}", flush=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", str(HOME / name)], check=True, timeout=INSTALL_S)
            pip = [str(bin / "pip"), "install", "-q", "--disable-pip-version-check", *packages]
            subprocess.run(pip, check=True, capture_output=True, text=True, timeout=INSTALL_S)
        except subprocess.TimeoutExpired as error:
            raise PeerAway(f"{packages[0]} was not installed within {INSTALL_S} s") from error
        except subprocess.CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines() or ["it said nothing"]
            raise PeerAway(f"{packages[0]} cannot be installed: {said[-1][:200]}") from error
        done.touch()
    return bin

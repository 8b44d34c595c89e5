"""MLflow's client for the tests, beside what is installed: its FastAPI is another than vLLM's, so the two share no lock."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PINS = (
    "mlflow-skinny==3.17.2", "cachetools==7.3.3", "cloudpickle==3.1.3", "databricks-sdk==0.162.0", "fastapi==0.165.0", "gitdb==4.0.12",
    "GitPython==3.2.1", "importlib_metadata==9.1.0", "smmap==5.0.3", "starlette==1.10.0", "zipp==4.1.2",
)  # fmt: skip
KEPT = Path(__file__).parents[3] / ".pytest_cache" / "clients" / PINS[0]


def folder() -> Path:
    """Where it lies, for PYTHONPATH: fetched from the package index once, half a minute. Skips the test where there is no index."""
    if KEPT.is_dir():
        return KEPT
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=KEPT.parent))
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(partial), *PINS]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the package index does not give MLflow's client: {done.stderr[-300:]}")
    try:
        os.rename(partial, KEPT)
    except OSError:  # another process of the tests was first
        return partial
    return KEPT

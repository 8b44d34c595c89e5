"""Client programs of other products for the tests, beside the installed packages. They need other versions than we do, so they share no
lock.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MLFLOW = (  # its version of FastAPI is not that of vLLM
    "mlflow-skinny==3.17.2", "cachetools==7.3.3", "cloudpickle==3.1.3", "databricks-sdk==0.162.0", "fastapi==0.165.0", "gitdb==4.0.12",
    "GitPython==3.2.1", "importlib_metadata==9.1.0", "smmap==5.0.3", "starlette==1.10.0", "zipp==4.1.2",
)  # fmt: skip
CROISSANT = (  # it needs a package that exists only as source
    "mlcroissant==1.1.1", "absl-py==2.5.1", "decorator==5.3.1", "etils==1.15.0", "importlib_resources==7.1.0", "jsonpath-rw==1.4.0",
    "ply==3.11", "pyparsing==3.3.3", "rdflib==7.6.0", "zipp==4.1.2",
)  # fmt: skip
MCP = (  # the product itself needs none of them
    "mcp==2.3.0", "mcp-types==2.3.0", "python-multipart==0.0.34", "sse-starlette==3.7.0", "starlette==1.10.0",
)  # fmt: skip
VERIFIERS = (  # only those requirements that its judges and tasksets import
    "verifiers==0.4.0", "aiofiles==25.1.0", "anthropic==2.14.0", "antlr4-python3-runtime==4.13.2", "connectrpc==0.11.1",
    "docstring_parser==0.18.0", "httpx2==2.16.2", "jiter==0.19.0", "latex2sympy2_extended==1.11.0", "math-verify==0.9.0", "mcp==2.0.0",
    "mcp-types==2.3.0", "openai==3.57.0", "prime-sandboxes==0.5.1", "prime-pydantic-config==0.4.3", "protobuf==7.36.2",
    "protobuf-py==0.6.0", "protobuf-py-ext==0.6.0", "pyqwest==0.12.0", "renderers==0.1.12", "sniffio==1.3.1", "sse-starlette==3.7.0",
    "starlette==1.10.0", "tenacity==9.2.1", "tomli_w==1.2.0", "typing-extensions==4.16.0",
)  # fmt: skip
VERL = ("verl==0.9.1", "orjson==3.13.0")  # the packages themselves need clusters; what logs needs these
AXOLOTL = ("axolotl==0.19.0",)
_KEPT = Path(__file__).parents[1] / ".pytest_cache" / "clients"


def folder(pins: tuple[str, ...]) -> Path:
    """The folder of these packages, for PYTHONPATH. They are fetched once from the package index, which takes half a minute. Skips the test
    if there is no index."""
    kept = _KEPT / pins[0]
    if kept.is_dir():
        return kept
    _KEPT.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=_KEPT))
    # Python compiles the few files that a test imports; compiling all of them takes longer than to fetch and unpack them
    options = ["-q", "--no-compile", "--no-deps", "--target", str(partial)]
    command = [sys.executable, "-m", "pip", "install", *options, *pins]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the package index does not give {pins[0]}: {done.stderr[-300:]}")
    try:
        os.rename(partial, kept)
    except OSError:  # another test process was first
        return partial
    return kept

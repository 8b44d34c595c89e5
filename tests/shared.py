"""The folder of the public data sets, for tests on machines that have these."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("TOUCHSTONE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no public data sets at {SHARED}; set TOUCHSTONE_SHARED")

"""A tiny model in a folder, and a place for the processes that hold models."""

import shutil
import tempfile
from pathlib import Path

import pytest

from webapp.inference.serving import process


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory):
    from trainer.inference.models import make_tiny

    folder = tmp_path_factory.mktemp("models") / "tiny"
    make_tiny(folder)
    return folder


@pytest.fixture
def short_var(settings):
    """A folder whose sockets have short paths. Processes that a test starts end with the test."""
    settings.VAR = Path(tempfile.mkdtemp(prefix="ts-"))
    yield settings.VAR
    for child in process._children:
        child.stdin.close()
        child.wait(30)
    process._children.clear()
    shutil.rmtree(settings.VAR)

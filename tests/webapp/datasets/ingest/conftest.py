"""Imports that were interrupted."""

import pytest

from webapp.datasets.ingest import loader, reader
from webapp.datasets.models import ImportJob


@pytest.fixture
def stopped(import_rows, monkeypatch):
    """An import that was interrupted after its second batch, in this process."""

    def run(content, **options):
        monkeypatch.setattr(reader, "ROWS", 2)
        take, calls = loader.Loader.take, []

        def breaks(self, *batch):
            calls.append(batch)
            if len(calls) > 2:
                raise RuntimeError("the power went")
            return take(self, *batch)

        with monkeypatch.context() as patch, pytest.raises(RuntimeError):
            patch.setattr(loader.Loader, "take", breaks)
            import_rows(content, **options)
        return ImportJob.objects.latest("id")

    return run

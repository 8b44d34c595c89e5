"""Imports a file through the pages, as people do."""

from pathlib import Path

from playwright.sync_api import Page, expect

from webapp.datasets.ingest import services
from webapp.datasets.models import ImportJob


def import_file(page: Page, file: Path, recognised: str, name: str) -> None:
    """Imports the file, and ends on the page of the new dataset. `recognised` is the format that the preview must name."""
    page.goto("/datasets/import")
    page.set_input_files("#id_file", file)
    expect(page.locator("#preview h2")).to_have_text(recognised)
    page.fill("#id_name", name)
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/imports/*")
    services.run_import(ImportJob.objects.get().pk)  # the work of a worker
    page.get_by_role("link", name="Open the dataset").click()

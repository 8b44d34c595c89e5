"""The published pages say what the report says today of the numbers beside them."""

from pathlib import Path

import pytest

from scripts import claim_pages


@pytest.mark.parametrize("path", claim_pages.published(), ids=lambda path: path.stem)
def test_a_published_page_is_what_its_numbers_give(path: Path) -> None:
    """If a sentence of a plan or the rule changes: `python -m scripts.claim_pages` writes the pages again."""
    page, numbers = claim_pages.again(path)
    assert path.with_suffix(".md").read_text() == page
    assert path.read_text() == numbers


def test_every_page_of_a_claim_has_its_numbers() -> None:
    pages = {path.stem for path in claim_pages.RESULTS.glob("*.md")}
    assert pages == {path.stem for path in claim_pages.published()}

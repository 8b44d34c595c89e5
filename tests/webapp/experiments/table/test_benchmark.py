"""`python -m benchmarks.runs_table` requests pages that exist, on the current schema."""

import pytest

from benchmarks.runs_table import PAGES, asked, filled


@pytest.mark.django_db(transaction=True)  # foreign keys are not checked while it fills the tables
def test_it_fills_a_table_and_asks_for_both_pages():
    client, values = filled(runs=400, metrics=4)
    assert values > 400 * 4
    assert [len(asked(client, PAGES[name], rounds=1)) for name in ("newest", "by a metric")] == [2, 2]

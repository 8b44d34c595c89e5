"""Ten thousand cases: pages read only one page of them."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.evaluation.launch import services
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.work import running

from .conftest import as_file

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PAIRS = 5_000


@pytest.fixture
def large(team):
    rows = [
        {
            "judge": judge,
            "pair": f"p{i}",
            "group": f"g{i % 5}",
            "label": "A",
            "given": "A" if i % 3 else "B",
            "swapped": "B",
        }
        for judge in ("one", "two")
        for i in range(PAIRS)
    ]
    recording = recordings.store_recording(team.researcher, "large.jsonl", as_file(rows))
    row = services.create(team.researcher, recipe="judge_audit", config={}, recording=recording)
    running.run(row.pk)
    row.refresh_from_db()
    return row


def test_the_pages_of_ten_thousand_cases_stay_small(as_researcher, large):
    assert large.results["tags"]["judge:one"] == PAIRS and large.cases.count() == 2 * PAIRS
    result = as_researcher.get(f"/evaluations/{large.pk}")
    assert len(result.content) < 100_000
    path, seen, pages = f"/evaluations/{large.pk}/cases?tag=wrong:given&tag=judge:two", 0, 0
    while path and pages < 3:
        with CaptureQueriesContext(connection) as captured:
            page = as_researcher.get(path)
        assert len(captured) < 12
        seen += len(page.context["cases"])
        path = page.context["next"] and f"/evaluations/{large.pk}/cases?{page.context['next']}"
        pages += 1
    assert (seen, pages, page.context["total"]) == (150, 3, 1667)


def test_the_export_holds_them_all(as_researcher, large):
    answer = as_researcher.get(f"/evaluations/{large.pk}/export/json")
    assert sum(chunk.count(b'"number": ') for chunk in answer.streaming_content) == 2 * PAIRS

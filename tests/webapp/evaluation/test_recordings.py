"""Recorded verdicts are taken as the programs that made them wrote them."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from webapp.core.problems import Invalid
from webapp.evaluation.recordings import as_lines

from .conftest import as_file, lines


def decision(pair: str, model: str = "gpt-4o", **changes) -> dict:
    row = {"pair_id": pair, "source": "mmlu-pro-law", "label": "A>B", "judge_model": "j", "response_model": model}
    return row | {"decision_AB": "A>B", "decision_BA": "B>A"} | changes


def test_lines_of_an_audit_stay_as_they_are():
    content = as_file(lines())
    assert as_lines("verdicts.jsonl", content) is content


def test_decisions_of_a_program_become_lines_of_an_audit():
    found = as_lines("judgments.jsonl", as_file([decision("p1"), decision("p2", decision_BA=None)]))
    assert [json.loads(line) for line in found.decode().split("\n")] == [
        {"judge": "j", "pair": "p1", "group": "knowledge", "label": "A", "given": "A", "swapped": "B"},
        {"judge": "j", "pair": "p2", "group": "knowledge", "label": "A", "given": "A", "swapped": None},
    ]


def test_pairs_of_two_collections_are_not_mixed():
    found = as_lines("judgments.jsonl", as_file([decision("p1"), decision("p1", "claude")]))
    told = [json.loads(line) for line in found.decode().split("\n")]
    assert [(line["pair"], line["group"]) for line in told] == [
        ("p1", "gpt-4o knowledge"),
        ("p1", "claude knowledge"),
    ]


def test_what_a_program_wrote_wrongly_is_named_by_line_and_field():
    with pytest.raises(Invalid) as caught:
        as_lines("judgments.jsonl", as_file([decision("p1"), decision("p2", label="perhaps")]))
    assert caught.value.fields["file"].startswith("judgments.jsonl, line 2: label:")


@pytest.mark.django_db
def test_a_refused_file_is_refused_beside_its_field(client, cast):
    client.force_login(cast.researcher.user)
    sent = {"recipe": "judge_audit", "file": SimpleUploadedFile("v.jsonl", b'{"judge": "j"}')}
    page = client.post("/evaluations/recordings", sent)
    assert page.status_code == 422 and b'aria-describedby="f-file_error"' in page.content
    assert "is missing" in page.content.decode()

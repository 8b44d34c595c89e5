"""Recorded outputs: JSON Lines are stored completely or not at all, and do not change."""

import io
import json
import threading

import pytest
from django.db import connection

from webapp.core.problems import Conflict, Invalid
from webapp.inference.endpoints import queries, recorded_outputs, services
from webapp.inference.models import RecordedOutput


@pytest.fixture
def endpoint(team):
    return services.create_endpoint(team.researcher, "recorded", name="old judge")


def lines(*rows) -> io.BytesIO:
    return io.BytesIO("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows).encode())


def row(key, text="yes"):
    return {"key": key, "text": text}


def test_outputs_are_replayed_by_key(team, endpoint):
    found = recorded_outputs.add_recorded(team.researcher, endpoint, lines(row("a", "ü\n"), "", row("b"), row("b")))
    assert (found.added, found.unchanged) == (2, 1)
    assert queries.recorded_texts(endpoint.pk, ["a", "c"]) == {"a": "ü\n"}


def test_the_same_file_again_changes_nothing(team, endpoint):
    for expected in ((2, 0), (0, 2)):
        found = recorded_outputs.add_recorded(team.researcher, endpoint, lines(row("a"), row("b")))
        assert (found.added, found.unchanged) == expected


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        *(("{", "not JSON"), ("[]", "nothing else"), ('{"key": "a"}', "nothing else"), ("[" * 100_000, "")),
        *(('{"key": "", "text": ""}', "key must be"), ('{"key": 1, "text": ""}', "key must be")),
        *(('{"key": "a", "text": null}', "text must be"), ('{"key": "a", "text": "\\u0000"}', "cannot be stored")),
        *(('{"key": "\\ud800", "text": ""}', "cannot be stored"), (row("first", "other"), "another text in line 1")),
        (row("stored", "other"), "is recorded with another text"),
        (row("k" * 301), "1 to 300"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_added(team, endpoint, bad, words):
    recorded_outputs.add_recorded(team.researcher, endpoint, lines(row("stored")))
    with pytest.raises(Invalid) as refused:
        recorded_outputs.add_recorded(team.researcher, endpoint, lines(row("first"), bad, row("last")))
    assert "1 line" in refused.value.message and words in refused.value.fields["file.2"]
    assert RecordedOutput.objects.count() == 1


def test_many_bad_lines_are_counted_and_the_first_named(team, endpoint):
    with pytest.raises(Invalid, match="30 lines") as refused:
        recorded_outputs.add_recorded(team.researcher, endpoint, lines(*["{"] * 30))
    assert len(refused.value.fields) == recorded_outputs.MOST_NAMED


def test_files_are_bounded(team, endpoint, monkeypatch):
    monkeypatch.setattr(recorded_outputs, "MOST_LINES", 3)
    monkeypatch.setattr(recorded_outputs, "LONGEST_LINE", 1000)
    for file in (
        lines(*[row(str(n)) for n in range(4)]),
        lines(row("a", "x" * 1000)),
        io.BytesIO(b""),
        io.BytesIO(b"\xff"),
    ):
        with pytest.raises(Invalid):
            recorded_outputs.add_recorded(team.researcher, endpoint, file)
    assert not RecordedOutput.objects.exists()


def test_statements_grow_with_batches_and_not_with_lines(team, endpoint, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        recorded_outputs.add_recorded(team.researcher, endpoint, lines(*[row(str(n)) for n in range(900)]))


def test_other_kinds_replay_nothing(team, endpoint):
    endpoint.kind = "chat"
    with pytest.raises(Conflict):
        recorded_outputs.add_recorded(team.researcher, endpoint, lines(row("a")))


@pytest.mark.django_db(transaction=True)
def test_two_uploads_that_disagree_leave_one_text_per_key(team, endpoint):
    outcomes = []

    def upload(text):
        try:
            recorded_outputs.add_recorded(team.researcher, endpoint, lines(*[row(str(n), text) for n in range(50)]))
            outcomes.append("added")
        except Invalid:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=upload, args=(text,)) for text in ("yes", "no")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added", "refused"]
    assert RecordedOutput.objects.values("text").distinct().count() == 1

"""Verdicts that were given elsewhere are stored as those of a judge here."""

import json
from dataclasses import replace
from io import StringIO
from weakref import ref

import pytest
from django.core.management import CommandError, call_command

from webapp.core.problems import Invalid
from webapp.datasets.models import DatasetVersion
from webapp.judging.models import Judge, Verdict
from webapp.judging.recorded import services as recorded
from webapp.judging.recorded.formats.base import RecordedPair
from webapp.judging.recorded.services import keep_recorded

A, TIE, B = -1, 0, 1
RECORDS = [
    RecordedPair("elsewhere", "e0", A, A, B, reason="It answers."),
    RecordedPair("elsewhere", "e1", A, TIE, None, raw_swapped="who knows"),
    RecordedPair("elsewhere", "unknown", A, A, B),
]


@pytest.fixture
def data(examples):
    return DatasetVersion.objects.get()


def keep(team, data, records):
    return keep_recorded(team.researcher, data, records, {each.judge for each in records if each.orders == "both"})


def test_each_order_becomes_a_verdict_that_says_what_was_said(team, data) -> None:
    [kept] = keep(team, data, RECORDS)
    assert (kept.pairs, kept.unmatched, kept.doubled) == (3, 1, 0)
    assert (kept.counts.done, kept.counts.missing, kept.counts.failed) == (3, 1, 0)
    rows = {(row.subject["example"], row.subject["order"]): row for row in Verdict.objects.all()}
    assert {place: row.parsed and row.parsed["verdict"] for place, row in rows.items()} == {
        ("e0", "given"): "A",
        ("e0", "swapped"): "B",  # as the judge said it, in swapped order
        ("e1", "given"): "tie",
        ("e1", "swapped"): None,
    }
    assert rows["e0", "given"].parsed["reasons"] == ["It answers."]
    assert rows["e1", "swapped"].raw == "who knows" and rows["e1", "swapped"].state == Verdict.State.MISSING
    assert {row.source for row in rows.values()} == {Verdict.Source.RECORDED}


def test_the_same_records_again_change_nothing(team, data) -> None:
    keep(team, data, RECORDS)
    [again] = keep(team, data, RECORDS)
    assert (again.counts.total, again.counts.stored, again.counts.done) == (4, 4, 0)
    assert Judge.objects.count() == 1 and Verdict.objects.count() == 4


def test_every_judge_stands_for_itself_and_is_asked_in_its_orders_only(team, data) -> None:
    records = [RecordedPair("one", "e0", A, A, orders="given"), RecordedPair("other", "e0", A, None, orders="given")]
    one, other = keep(team, data, records)
    assert (one.judge, one.version.judge.name, other.version.judge.name) == ("one", "one", "other")
    assert (one.counts.done, other.counts.missing) == (1, 1)
    assert Verdict.objects.get(version=other.version).raw == "null"


def test_other_orders_are_the_judges_next_version(team, data) -> None:
    [first] = keep(team, data, [RecordedPair("j", "e0", A, A, orders="given")])
    [second] = keep(team, data, [RecordedPair("j", "e0", A, A, B)])
    assert (first.version.number, second.version.number) == (1, 2)
    assert first.version.judge_id == second.version.judge_id and second.counts.done == 2


def test_a_judge_that_is_called_keeps_its_name_to_itself(team, data, version) -> None:
    with pytest.raises(Invalid, match="name is taken"):
        keep(team, data, [RecordedPair(version.judge.name, "e0", A, A, B)])


def test_a_record_that_says_something_else_than_the_kept_one_is_refused(team, data) -> None:
    keep(team, data, RECORDS[:1])
    with pytest.raises(Invalid, match="Nothing was added"):
        keep(team, data, [RecordedPair("elsewhere", "e0", A, B, B)])


def test_batches_come_to_the_same_as_all_at_once(team, data, monkeypatch) -> None:
    """If there are two verdicts on one question, the first is kept, in one batch or in two. Only a verdict that was stored earlier is
    refused.
    """
    monkeypatch.setattr(recorded, "BATCH", 2)
    other = RecordedPair("second judge", "e0", A, B, A)
    again = replace(RECORDS[0], group="again", given=B)
    kept, second = keep(team, data, [RECORDS[0], other, again, *RECORDS[1:]])
    assert (kept.pairs, kept.unmatched, kept.doubled, second.pairs) == (4, 1, 1, 1)
    assert (kept.counts.done, kept.counts.missing, kept.counts.failed, second.counts.done) == (3, 1, 0, 2)
    mine = Verdict.objects.filter(version=kept.version, subject__example="e0", subject__order="given")
    assert [row.parsed["verdict"] for row in mine] == ["A"]
    with pytest.raises(Invalid, match="Nothing was added"):
        keep(team, data, [again])


def test_a_file_larger_than_a_batch_is_not_held_in_memory(team, data, monkeypatch) -> None:
    monkeypatch.setattr(recorded, "BATCH", 10)
    made, most = [], 0

    def records():
        nonlocal most
        for number in range(300):
            record = RecordedPair("elsewhere", f"e{number}", A, A, B, reason="x" * 1000)
            made.append(ref(record))
            most = max(most, sum(each() is not None for each in made))
            yield record

    [kept] = keep_recorded(team.researcher, data, records(), {"elsewhere"})
    assert kept.pairs == 300 and most <= 3 * recorded.BATCH


def test_a_judge_of_other_pairs_is_counted_and_not_made(team, data) -> None:
    [kept] = keep(team, data, RECORDS[2:])
    assert (kept.judge, kept.version, kept.pairs, kept.unmatched) == ("elsewhere", None, 1, 1)
    assert not Judge.objects.exists()


def test_the_command_keeps_them_where_a_dataset_is_named(team, data, tmp_path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps({"judge": "j", "pair": "e2", "label": "A", "given": "B", "swapped": "B"}))
    place = ["--dataset", data.dataset.name, "--workspace", team.researcher.workspace.slug]
    out = StringIO()
    call_command("import_verdicts", str(file), *place, stdout=out)
    [kept] = json.loads(out.getvalue())["kept"]
    assert (kept["judge"], kept["pairs"], kept["unmatched"], kept["done"]) == ("j", 1, 0, 2)
    with pytest.raises(CommandError, match="There is no dataset 'none'"):
        call_command("import_verdicts", str(file), "--dataset", "none", *place[2:])

"""An import of a file from start to end, as users see it."""

import gzip
import hashlib
import io
import json
import zipfile

import pytest

from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.core.background import jobs
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets import queries
from webapp.datasets.columns.filters import Filters
from webapp.datasets.ingest import loader
from webapp.datasets.ingest import services as imports
from webapp.datasets.ingest.preview import preview
from webapp.datasets.models import Dataset, DatasetVersion, Example, ImportJob, VersionMember
from webapp.datasets.versions import services as datasets
from webapp.datasets.versions.digests import version_digest

from ..conftest import row

RUBRIC = {"criteria": [{"text": "Names a colour", "points": 3}, {"text": "Is rude", "points": -2}]}


def reasons(job):
    return [(problem["line"], problem["field"], problem["reason"]) for problem in job.rejected]


def test_a_good_file_becomes_version_one_with_its_counts(import_rows):
    pair = {
        "responses": [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}],
        "preferences": [{"a": "a", "b": "b", "strength": -1, "reasons": [{"text": "shorter"}]}],
    }
    job = import_rows([row("e1", split="train", rubric=RUBRIC), row("e2", split="heldout", **pair)])
    assert job.state == ImportJob.State.FINISHED, job.error
    assert job.version.number == 1
    assert job.version.counts == {
        "examples": 2,
        "train": 1,
        "heldout": 1,
        "rubrics": 1,
        "criteria": 2,
        "verifiable_criteria": 0,
        "responses": 2,
        "preferences": 1,
    }
    first = queries.examples(job.version, Filters()).items[0].example
    assert [criterion["id"] for criterion in first.content["rubric"]["criteria"]] == ["c1", "c2"]
    assert job.version.digest == version_digest(Example.objects.values_list("digest", flat=True))
    assert AuditEntry.objects.filter(action="import.finished").count() == 1


def test_a_field_whose_name_holds_a_nul_is_refused_with_its_name(import_rows):
    job = import_rows([row("e1"), row("e2", **{"a\0b": 1})], format="touchstone")
    assert (job.state, reasons(job)) == ("failed", [(2, "a\\0b", "unknown field")])


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("responses.0.id", {"responses": [{"id": "a\0", "text": "x"}]}),
        ("preferences.0.rater", {"preferences": [{"a": "a", "b": "b", "strength": 1, "rater": "r\0"}]}),
        ("rubric.criteria.0.id", {"rubric": {"criteria": [{"id": "c\0", "text": "Is kind", "points": 1}]}}),
        ("rubric.criteria.0.text", {"rubric": {"criteria": [{"id": "c", "text": "Is\0kind", "points": 1}]}}),
    ],
)
def test_a_nul_in_a_name_that_annotation_stores_is_refused(import_rows, field, changes):
    pair = {"responses": [{"id": "a", "text": "x\0"}, {"id": "b", "text": "y"}]}
    assert import_rows([row("e1", **pair)], name="texts").state == "finished"
    assert reasons(import_rows([row("e1", **(pair | changes))])) == [(1, field, "holds a NUL character")]


def test_a_malformed_line_imports_nothing_and_names_line_field_and_reason(import_rows):
    job = import_rows(json.dumps(row("e1")) + '\n{"key": "e2"}\n{oops\n[1]\n')
    assert job.state == ImportJob.State.FAILED
    assert reasons(job)[0] == (2, "prompt", "is missing")
    assert reasons(job)[1][0] == 3 and "not JSON" in reasons(job)[1][2]
    assert reasons(job)[2] == (4, "", "expected a JSON object, found a list")
    assert job.rejected_count == 3
    assert job.counts == {"good": 1, "rejected": 3}
    assert not Dataset.objects.exists() and not Example.objects.exists()


def test_keep_good_imports_the_rest_and_still_reports(import_rows):
    job = import_rows(json.dumps(row("e1")) + '\n{"key": "e2"}\n', keep_good=True)
    assert job.state == ImportJob.State.FINISHED
    assert job.counts["examples"] == 1 and job.counts["rejected"] == 1
    assert reasons(job) == [(2, "prompt", "is missing")]


def test_only_the_first_thousand_problems_are_kept_but_all_are_counted(import_rows):
    job = import_rows("{}\n" * 1_500)
    assert len(job.rejected) == 1_000
    assert job.rejected_count == 1_500


def test_a_rubric_without_a_positive_criterion_is_refused(import_rows):
    job = import_rows([row(rubric={"criteria": [{"text": "Is rude", "points": -1}]})])
    assert job.state == ImportJob.State.FAILED
    assert reasons(job)[0][:2] == (1, "rubric") and "positive points" in reasons(job)[0][2]


@pytest.mark.parametrize(
    ("verifier", "field"),
    [
        ({"name": "no_such"}, "rubric.criteria.0.verifier.name"),
        ({"name": "word_count", "args": {"mx": 3}}, "rubric.criteria.0.verifier.args.mx"),
    ],
)
def test_a_verifier_that_cannot_run_is_refused_at_its_field(import_rows, verifier, field):
    job = import_rows([row(rubric={"criteria": [{"text": "Short", "points": 1, "verifier": verifier}]})])
    assert reasons(job)[0][:2] == (1, field)


def test_a_key_repeated_with_other_content_is_an_error_of_its_line(import_rows):
    lines = [row("e1"), row("e2"), row("e1", domain="other"), row("e2", domain="third")]
    job = import_rows(lines)
    assert reasons(job) == [(n, "key", f"the key 'e{n - 2}' is that of line {n - 2} already") for n in (3, 4)]
    assert import_rows(lines, keep_good=True).counts["examples"] == 2


def test_a_row_repeated_as_it_is_counts_once_and_is_told(import_rows):
    job = import_rows([row("e1"), row("e2"), row("e1"), row("e1"), row("e3")])
    assert job.rejected == [] and (job.counts["examples"], job.counts["repeated"]) == (3, 2)
    assert import_rows([row("e3"), row("e2"), row("e1")]).unchanged


def test_of_a_repeated_row_and_a_malformed_one_only_the_latter_is_refused(import_rows):
    lines = [row("e1"), row("e1"), "{oops", row("e2")]
    assert [line for line, _, _ in reasons(import_rows(lines))] == [3]
    kept = import_rows(lines, keep_good=True).counts
    assert (kept["examples"], kept["rejected"], kept["repeated"]) == (2, 1, 1)


def test_the_same_file_twice_changes_nothing_and_says_so(import_rows):
    first = import_rows([row("e1"), row("e2")])
    again = import_rows([row("e2"), row("e1")])  # the order does not matter
    assert not first.unchanged and again.unchanged
    assert again.version == first.version
    assert DatasetVersion.objects.count() == 1 and Example.objects.count() == 2


def test_changed_content_makes_a_new_version_that_shares_what_stayed(import_rows):
    import_rows([row("e1"), row("e2")])
    second = import_rows([row("e1"), row("e2", domain="new"), row("e3")])
    assert second.version.number == 2
    assert Example.objects.count() == 4 and VersionMember.objects.count() == 5
    assert second.version.counts["examples"] == 3


def test_an_import_that_dies_midway_leaves_nothing_and_is_taken_up_again(import_rows, monkeypatch, team, tmp_path):
    def die(*args):
        raise RuntimeError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(loader.Loader, "finish", die)
        with pytest.raises(RuntimeError):
            import_rows([row("e1")])
    job = ImportJob.objects.get()
    assert job.state == ImportJob.State.RUNNING
    assert not Dataset.objects.exists() and not DatasetVersion.objects.exists()
    imports.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED and Example.objects.count() == 1


def test_an_import_without_signs_of_life_is_queued_again(
    import_rows, team, tmp_path, django_capture_on_commit_callbacks
):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row()))
    job = imports.start_import(team.researcher, path, name="demo", queue=False)
    assert jobs.take_up_lost() == 0
    ImportJob.objects.update(seen_at="2020-01-01T00:00Z")
    assert jobs.take_up_lost() == 1
    imports.run_import(job.pk)
    ImportJob.objects.update(seen_at="2020-01-01T00:00Z")
    assert jobs.take_up_lost() == 0


def test_gzip_bom_crlf_and_blank_lines_are_read(import_rows):
    text = "\ufeff" + json.dumps(row("e1")) + "\r\n\r\n" + json.dumps(row("e2")) + "\r\n"
    assert import_rows(gzip.compress(text.encode()), file_name="rows.jsonl.gz").counts["examples"] == 2


def test_a_gzip_file_cut_short_is_a_problem_not_a_crash(import_rows):
    packed = gzip.compress("".join(json.dumps(row(f"e{i}")) + "\n" for i in range(2_000)).encode())
    job = import_rows(packed[: len(packed) // 2], file_name="rows.jsonl.gz", format="touchstone")
    assert job.state == ImportJob.State.FAILED
    assert "damaged" in job.rejected[-1]["reason"]


def test_bytes_that_are_not_utf8_are_named(import_rows):
    job = import_rows(json.dumps(row("e1")).encode() + b'\n{"key": "e2\xff"}\n')
    assert reasons(job) == [(2, "", "not UTF-8 text: byte 12 of the line is 0xff")]


@pytest.mark.parametrize("before", [0, 1_500], ids=["in the head", "far behind the head"])
@pytest.mark.parametrize(("start", "between", "end"), [("[", ",", "]"), ("{\n", "", "")], ids=["array", "objects"])
def test_an_array_goes_on_to_the_first_byte_that_is_not_utf8(import_rows, before, start, between, end):
    rows = [json.dumps(row(f"e{i}", reference="x" * 400)) for i in range(before + 1)]
    rows[0] = start + rows[0].removeprefix("{" if start != "[" else "")
    content = f"{between}\n".join([*rows, ""]).encode()
    for broken in (b'{"key": "bad\xff"}', b"\xff"):
        job = import_rows(content + broken + end.encode(), file_name="rows.json", format="touchstone")
        assert job.state == ImportJob.State.FAILED and job.rows_done == before + 2
        [(line, _, reason)] = reasons(job)
        assert line >= before + 2 and reason == "not UTF-8 text from here on: 0xff"


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("where", [0.0, 0.6], ids=["at its start", "midway"])
def test_an_archive_that_is_damaged_is_told_whatever_packed_it(import_rows, packing, where):
    packed = io.BytesIO()
    noise = [hashlib.shake_256(bytes([i % 256, i // 256])).hexdigest(500) for i in range(1_500)]
    rows = "".join(json.dumps(row(f"e{i}", reference=text)) + "\n" for i, text in enumerate(noise))
    with zipfile.ZipFile(packed, "w", packing) as archive:
        archive.writestr("rows.jsonl", rows)
    data = bytearray(packed.getvalue())
    place = 50 + int(where * len(data))
    data[place : place + 200] = bytes(200 * [0xA5])
    try:
        job = import_rows(bytes(data), file_name="rows.zip", format="touchstone")
    except Invalid as refused:
        assert "unpacked" in refused.fields["file"] or "Invalid data" in refused.fields["file"]
    else:
        assert job.state == ImportJob.State.FAILED and "damaged here" in job.rejected[-1]["reason"]


def test_a_line_of_ten_megabytes_is_refused_and_the_next_one_read(import_rows):
    job = import_rows(json.dumps(row("e1", reference="x" * 10_000_000)) + "\n" + json.dumps(row("e2")), keep_good=True)
    assert reasons(job) == [(1, "", "the line is longer than 8 MB")]
    assert job.counts["examples"] == 1


@pytest.mark.parametrize(
    "line", ['{"key": "e1", "prompt": "x", "meta": {"n": 1e999}}', '{"key": "\\ud800", "prompt": "x"}']
)
def test_values_that_cannot_be_stored_are_refused(import_rows, line):
    job = import_rows(line, format="touchstone")
    assert job.state == ImportJob.State.FAILED and job.rejected_count == 1


def test_a_nul_inside_text_is_kept(import_rows):
    job = import_rows([row("e1", reference="a\0b", prompt="p\0q")], format="touchstone")
    assert job.state == ImportJob.State.FINISHED, job.rejected
    assert Example.objects.get().content["reference"] == "a\0b"


def test_an_example_never_changes_side(import_rows):
    import_rows([row("e1", split="train"), row("e2")])
    job = import_rows([row("e1", split="heldout"), row("e2", split="train")])
    assert reasons(job) == [(1, "split", "'e1' is train in an earlier version; an example never changes side")]


def test_sides_stay_as_a_table_grows(import_rows):
    rows = [{"id": f"q{i}", "question": f"What is {i}?"} for i in range(400)]
    import_rows(rows[:200], heldout_share=0.2)
    before = dict(Example.objects.values_list("key", "split"))
    grown = import_rows(rows, heldout_share=0.4).version
    after = dict(VersionMember.objects.filter(version=grown).values_list("example__key", "example__split"))
    assert before.items() <= after.items()
    assert 0.12 < list(before.values()).count("heldout") / 200 < 0.28


def test_nothing_was_imported_when_the_file_is_gone(team, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row()))
    job = imports.start_import(team.researcher, path, name="demo", queue=False)
    path.unlink()
    imports.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED and "The file is gone" in job.error


@pytest.mark.parametrize(
    ("file", "format", "counts"),
    [
        ("healthbench_sample/healthbench_30.jsonl", "healthbench", {"examples": 30, "criteria": 352}),
        ("hh_rlhf/harmless-base-test.jsonl.gz", "hh_rlhf", {"examples": 2312, "preferences": 2312}),
        ("pandalm/testset-v1.json", "pandalm", {"examples": 999, "preferences": 2997}),
    ],
)
def test_real_files_are_recognised_and_imported_whole(team, shared, file, format, counts):
    job = imports.start_import(team.researcher, shared(file), name="real", queue=False)
    imports.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED, job.rejected[:3]
    assert job.format == format
    assert counts.items() <= job.counts.items()


def test_webhooks_hear_of_every_import_and_of_the_first_freezing(import_rows, team):
    listen(team.owner)
    version = import_rows([row("e1")]).version
    import_rows([row("e1")])
    import_rows('{"key": "e2"}\n')
    for _ in range(2):
        datasets.freeze(team.researcher, version)
    facts = {
        "dataset": version.dataset_id,
        "name": version.dataset.name,
        "version": 1,
        "digest": version.digest,
    }
    heard = announced_events()
    assert [event for event, _ in heard if event != "version.frozen"] == [
        f"import.{word}" for word in ("started", "finished", "started", "finished", "started", "failed")
    ]
    ids = [payload["import"] for event, payload in heard if event.startswith("import.")]
    assert ids[::2] == ids[1::2] and heard[0][1] == {"import": ids[0], "name": version.dataset.name}
    assert [payload["unchanged"] for event, payload in heard if event == "import.finished"] == [False, True]
    assert "1 line was refused" in heard[5][1]["error"]
    assert heard[6:] == [("version.frozen", facts)]


def test_an_import_that_is_refused_is_not_announced(team, tmp_path):
    listen(team.owner)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(Invalid):
        imports.start_import(team.researcher, tmp_path / "empty.jsonl", name="none")
    assert announced_events() == []


def test_what_a_worker_gathers_is_announced_when_it_is_asked_for(team):
    listen(team.owner)
    job = imports.start_gathering(team.researcher, {"kind": "verdicts"}, name="gathered", file_name="g.jsonl")
    assert announced_events() == [("import.started", {"import": job.pk, "name": "gathered"})]


def test_a_file_with_answers_of_a_project_is_refused_with_what_to_do_instead(import_rows):
    """They have no prompts. In an earlier version, the refusal only listed twenty columns."""
    line = {"id": 1, "task": 5, "example": "e1", "kind": "pairwise", "rater": "annotator-1", "guidelines": 1}
    job = import_rows([{**line, "subject": {"a": "x", "b": "y"}, "content": {"strength": 1}}])
    assert job.state == "failed" and "publish them on its tab Answers" in job.rejected[0]["reason"]


def test_an_import_without_a_mapping_reads_all_rows_as_the_preview_does(import_rows, tmp_path):
    """A row without its second response is no prompt alone, whatever its own columns suggest."""
    pair = {"prompt": "Which?", "response_1": "First.", "response_2": "Second.", "preference": 1}
    rows = [pair, {**pair, "prompt": "And this?", "preference": 2}, {"prompt": "Lost?", "response_1": "Only."}]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    shown = preview(path, path.name)
    job = import_rows(rows)
    assert job.state == ImportJob.State.FAILED and job.mapping == {}
    assert [each["reason"] for each in job.rejected] == [each["reason"] for each in shown["problems"]] != []
    scores = [{**pair, "preference": 1}, {**pair, "prompt": "And this?", "preference": 0}]
    job = import_rows(scores, name="scores", keep_good=True)
    assert (job.version.counts["examples"], job.version.counts["preferences"]) == (2, 0)


def test_a_row_may_lack_columns_that_other_rows_have(import_rows):
    rows = [
        {"prompt": "One?", "response": "Yes.", "system": "Be short.", "domain": "maths"},
        {"prompt": "Two?", "rubric": "Names a number"},
        {"prompt": "Three?", "response": "No."},
    ]
    job = import_rows(rows)
    assert job.state == ImportJob.State.FINISHED and job.rejected_count == 0
    prompts = [json.loads(canonical)["prompt"] for canonical in Example.objects.values_list("canonical", flat=True)]
    roles = {turns[-1]["content"]: [turn["role"] for turn in turns] for turns in prompts}
    assert roles == {"One?": ["system", "user"], "Two?": ["user"], "Three?": ["user"]}
    assert job.version.counts["rubrics"] == 1 and job.version.counts["responses"] == 2


def test_a_form_with_the_mapping_of_another_file_shows_what_this_file_suggests(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("question,answer\nWhy?,Because\n")
    shown = preview(path, path.name, mapping={"prompt": "instruction"})
    assert shown["mapping"] == {"prompt": "question", "response": "answer"} and shown["good"] == 1

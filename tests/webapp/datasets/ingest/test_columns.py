"""The columns of plain tables: by which of them preview and import read each row, and what becomes of a mapping that names a wrong one."""

import io
import json
import zipfile
from dataclasses import replace

import pytest
from django.utils.html import strip_tags

from tests.pages import page_html
from webapp.core.problems import Invalid
from webapp.datasets.ingest import inspection, reader, services
from webapp.datasets.ingest.checkpoint import ImportCheckpoint
from webapp.datasets.ingest.preview import preview
from webapp.datasets.models import Example, ImportJob
from webapp.datasets.versions.split_rule import Rule

PROMPTS = [{"prompt": f"Question {number}?"} for number in range(25)]
GUESSED = {"prompt": "question", "response": "answer"}
LATE = {"prompt": "Late?", "system": "Be short.", "response": "Yes.", "rubric": "Names a number", "note": "x"}


def stored():
    """Prompt -> example, of all that were imported."""
    made = map(json.loads, Example.objects.values_list("canonical", flat=True))
    return {each["prompt"][-1]["content"]: each for each in made}


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def archive(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as into:
        for name, rows in files.items():
            into.writestr(f"{name}.jsonl", lines(rows))
    return packed.getvalue()


def shown_of(tmp_path, content, name="rows.jsonl", **options):
    path = tmp_path / f"shown-{name}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return preview(path, name, "table", **options)


def test_a_row_is_also_read_by_columns_that_the_first_twenty_rows_lack(import_rows, tmp_path):
    shown = shown_of(tmp_path, lines([*PROMPTS, LATE]))
    assert shown["mapping"] == {name: name for name in ("prompt", "system", "response", "rubric")}
    assert (shown["good"], shown["unread"]) == (26, ["note"])
    job = import_rows([*PROMPTS, LATE], format="table")
    assert (job.state, job.mapping) == (ImportJob.State.FINISHED, {})
    late = stored()["Late?"]
    assert late["prompt"][0]["content"] == "Be short." and late["responses"][0]["text"] == "Yes."
    assert late["rubric"]["criteria"][0]["text"] == "Names a number" and late["meta"] == {"note": "x"}


def test_a_column_that_only_later_rows_have_can_be_mapped(import_rows):
    late = {"prompt": "Late?", "rules": "Names a number"}
    import_rows([*PROMPTS, late], format="table", mapping={"prompt": "prompt", "rubric": "rules"})
    assert stored()["Late?"]["rubric"]["criteria"][0]["text"] == "Names a number"


def test_each_file_of_an_archive_is_read_by_its_own_columns(import_rows, tmp_path):
    a = [{"question": f"A{number}?", "answer": "Yes."} for number in range(3)]
    b = [{"question": f"B{number}?", "output": "No."} for number in range(3)]
    packed = archive(a=a, b=b)
    shown = shown_of(tmp_path, packed, "both.zip")
    assert (shown["mapping"], shown["unread"]) == (GUESSED, [])
    assert shown["others"] == {"response": ["output"]}
    assert [len(each["responses"]) for each in shown["examples"]] == [1] * 6
    job = import_rows(packed, file_name="both.zip", format="table")
    assert job.version.counts["responses"] == 6
    shown = shown_of(tmp_path, packed, "both.zip", mapping=GUESSED)
    assert (shown["unread"], shown["guessed"]) == (["output"], False)
    job = import_rows(packed, file_name="both.zip", format="table", name="given", mapping=GUESSED)
    assert (job.version.counts["responses"], job.mapping) == (3, GUESSED)
    assert job.unsaid == {"the column output: no field comes from it, so it is only in meta": 3}


def test_a_response_beside_a_pair_is_told_as_a_column_that_nothing_reads(import_rows, tmp_path):
    both = {"prompt": "Both?", "response": "Other.", "chosen": "Good.", "rejected": "Bad."}
    scored = {"prompt": "Scored?", "response": [{"text": "One.", "score": 3}], "chosen": "", "rejected": ""}
    mapping = {name: name for name in both}
    assert shown_of(tmp_path, lines([both]))["unread"] == ["response"]
    assert shown_of(tmp_path, lines([both]), mapping=mapping)["unread"] == ["response"]
    assert shown_of(tmp_path, lines([both, scored]), mapping=mapping)["unread"] == []
    job = import_rows([both, both | {"prompt": "Two?"}, scored], format="table", mapping=mapping)
    assert job.unsaid == {"the column response: no field comes from it, so it is only in meta": 2}
    assert stored()["Both?"]["meta"] == {"response": "Other."}
    assert stored()["Scored?"]["responses"][0]["text"] == "One."


def test_rows_of_one_file_may_have_their_response_in_different_columns(import_rows):
    rows = [{"question": f"{number}?", ("answer", "output")[number % 2]: "Yes."} for number in range(30)]
    assert import_rows(rows, format="table").version.counts["responses"] == 30


def test_a_column_that_stands_beside_another_one_does_not_replace_it(import_rows):
    rows = [{"prompt": "Both?", "response": "Yes.", "output": "log"}, {"prompt": "One?", "output": "log"}]
    import_rows(rows, format="table")
    assert stored()["One?"]["meta"] == {"output": "log"} and "responses" not in stored()["One?"]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("other", [0, "0", -1, 0.3])
def test_a_late_number_that_is_neither_1_nor_2_puts_all_rows_in_doubt(import_rows, tmp_path, mapped, other):
    """The first 20 rows may all have a 1 that is the second response, counted from 0."""
    pair = {"response_1": "Yes.", "response_2": "No.", "preference": 1}
    rows = [{"prompt": f"{number}?", **pair} for number in range(25)]
    rows.append({**rows[0], "prompt": "Late?", "preference": other})
    mapping = {"prompt": "prompt", "response_a": "response_1", "response_b": "response_2", "preference": "preference"}
    shown = shown_of(tmp_path, lines(rows))
    assert "so no row of the file is imported" in shown["problems"][0]["reason"]
    job = import_rows(rows, format="table", keep_good=True, mapping=mapping if mapped else None)
    assert job.state == ImportJob.State.FAILED and not Example.objects.exists()
    assert job.error.startswith("Line 26, preference: must say which response is better") and len(job.rejected) == 1
    del mapping["preference"]
    job = import_rows(rows, format="table", keep_good=True, mapping=mapping)
    assert (job.version.counts["examples"], job.version.counts["preferences"]) == (26, 0)


def test_a_late_row_of_a_pair_without_its_second_response_is_refused(import_rows, tmp_path):
    pairs = [{"prompt": f"{number}?", "response_1": "Yes.", "response_2": "No."} for number in range(25)]
    half = {"prompt": "Half?", "response_1": "Only.", "rubric": "Names a number"}
    job = import_rows([*pairs, half], format="table")
    assert [(each["line"], each["field"]) for each in job.rejected] == [(26, "response_2")]
    shown = shown_of(tmp_path, lines([*pairs, half]))
    assert [each["reason"] for each in shown["problems"]] == [each["reason"] for each in job.rejected]


@pytest.fixture
def unseen(monkeypatch):
    """Lets the inspection of an import end before the last row, as it does in large files."""
    given = inspection.given
    monkeypatch.setattr(
        inspection, "given", lambda *args, **options: replace(given(*args, **options), all_columns=False)
    )


MAPPED = {"prompt": "prompt", "rubric": "rules"}
RULED = [*PROMPTS[:6], {"prompt": "Late?", "rules": "Names a number"}]


def test_a_mapped_column_that_no_row_has_is_told_at_the_end_of_a_large_import(import_rows, unseen):
    job = import_rows(PROMPTS, format="table", mapping=MAPPED)
    assert job.state == ImportJob.State.FAILED and not Example.objects.exists()
    assert job.error.startswith("The mapping names a column that no row has: rules for rubric. Nothing was imported.")
    assert import_rows(RULED, format="table", mapping=MAPPED).state == ImportJob.State.FINISHED


def test_a_mapped_column_that_no_row_has_is_refused_at_once_if_all_rows_were_seen(import_rows):
    with pytest.raises(Invalid) as refused:
        import_rows(PROMPTS, format="table", mapping=MAPPED)
    assert refused.value.fields == {"mapping.rubric": "no row has the column rules; the rows have prompt"}


@pytest.mark.parametrize("earlier_release", [False, True])
def test_an_import_that_goes_on_knows_which_columns_its_rows_had(stopped, earlier_release):
    job = stopped(RULED[::-1], format="table", mapping=MAPPED)
    assert job.taken["rows"] == 4 and job.taken["unmet"] == []
    if earlier_release:
        del job.taken["unmet"], job.taken["unread"]
        job.save()
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED and job.counts["examples"] == 7


def test_two_readers_together_know_which_columns_the_rows_had(tmp_path, monkeypatch):
    """Each of them knows only its own batches."""
    monkeypatch.setattr(reader, "ROWS", 2)
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(RULED))
    taken = ImportCheckpoint(1, "", None)
    one = reader.Reader(path, path.name, (path.name,), "table", MAPPED | {"system": "none"}, Rule(0.5), taken, turns=2)
    unmet = [list(each.ready(None))[-1].unmet for each in (one, replace(one, turn=1))]
    assert unmet == [{"none", "rules"}, {"none"}] and unmet[0] & unmet[1] == {"none"}


def test_the_page_gives_a_mapping_only_if_somebody_chose_a_column(as_researcher):
    content = lines([{"question": "A?", "answer": "Yes."}, {"question": "B?", "output": "No."}])

    def send(address, **posted):
        file = io.BytesIO(content.encode())
        file.name = "rows.jsonl"
        return as_researcher.post(address, {"file": file, "format": "table", **posted})

    page = page_html(send("/datasets/import/preview"))
    assert '<input type="hidden" name="guessed-response" value="answer">' in page
    assert 'In other rows: <span class="mono">output</span>' in page and "Nothing reads" not in page
    kept = {f"{kind}-{name}": of for kind in ("map", "guessed") for name, of in GUESSED.items()}
    send("/datasets/import", name="kept", **kept)
    send("/datasets/import", name="changed", **kept | {"map-response": "output"})
    assert dict(ImportJob.objects.values_list("dataset_name", "mapping")) == {
        "kept": {},
        "changed": {"prompt": "question", "response": "output"},
    }
    page = page_html(send("/datasets/import/preview", **kept | {"map-response": "output"}))
    assert "guessed-" not in page and 'Nothing reads <span class="mono">answer</span>' in page


def test_the_page_names_twenty_columns_that_nothing_reads_and_counts_the_others(as_researcher):
    file = io.BytesIO(lines([{"prompt": "A?", **{f"more{number}": "x" for number in range(32)}}]).encode())
    file.name = "rows.jsonl"
    page = strip_tags(page_html(as_researcher.post("/datasets/import/preview", {"file": file, "format": "table"})))
    told = " ".join(page.partition("Nothing reads")[2].split("Each example")[0].split())
    assert told == f"{', '.join(f'more{number}' for number in range(20))} and 12 other columns."

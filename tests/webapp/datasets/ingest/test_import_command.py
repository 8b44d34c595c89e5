"""`manage.py import_dataset` prints one JSON object in every case, and has the right exit status."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from webapp.datasets.ingest import loader, reader
from webapp.datasets.models import DatasetVersion, Example, ImportJob

from ..conftest import row


def run(path, **options) -> tuple[dict, int]:
    out, status = StringIO(), 0
    try:
        call_command("import_dataset", str(path), "--name", "demo", "--workspace", "lab", stdout=out, **options)
    except SystemExit as end:
        status = int(end.code)
    return json.loads(out.getvalue()), status


def test_the_same_file_twice_changes_nothing(team, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(row("e1")))
    first, again = run(tmp_path / "rows.jsonl"), run(tmp_path / "rows.jsonl")
    assert first == ({**again[0], "unchanged": False}, 0)
    assert again[0]["unchanged"]


def test_refused_lines_are_told_and_end_with_status_1(team, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(row("e1")) + "\n{\n")
    told, status = run(tmp_path / "rows.jsonl")
    assert (status, told["id"], told["counts"]) == (1, None, {"good": 1, "rejected": 1})
    assert [(p["file"], p["line"]) for p in told["rejected"]] == [("rows.jsonl", 2)]
    told, status = run(tmp_path / "rows.jsonl", keep_good=True)
    assert (status, told["counts"]["examples"], told["rejected_count"]) == (0, 1, 1)


def test_an_interrupted_import_leaves_nothing_and_is_not_taken_up(team, tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row(f"e{i}")) + "\n" for i in range(9)))
    monkeypatch.setattr(reader, "ROWS", 3)
    take, calls = loader.Loader.take, []

    def interrupted(self, ready):
        calls.append(ready)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return take(self, ready)

    monkeypatch.setattr(loader.Loader, "take", interrupted)
    told, status = run(tmp_path / "rows.jsonl")
    assert (status, told["error"]) == (1, "The import was cancelled. Nothing was imported.")
    assert ImportJob.objects.get().state == "cancelled" and len(calls) == 3
    assert not Example.objects.exists() and not DatasetVersion.every.exists()


def test_a_refusal_before_the_import_begins_is_printed_like_any_other(team, tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    out = StringIO()
    with pytest.raises(CommandError, match="holds no bytes"):
        call_command(
            "import_dataset", str(tmp_path / "empty.jsonl"), "--name", "none", "--workspace", "lab", stdout=out
        )
    told = json.loads(out.getvalue())
    assert (told["id"], told["digest"], told["name"], told["rejected"]) == (None, None, "none", [])
    assert told["error"] == "The file is empty. file: holds no bytes"

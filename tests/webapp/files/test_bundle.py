"""Folders and archives: their files are imported together, and no path in an upload leads outside of it."""

import json
import zipfile

import pytest

from webapp.core.problems import Invalid
from webapp.datasets.ingest import services
from webapp.datasets.ingest.preview import preview
from webapp.datasets.models import ImportJob
from webapp.files.bundle import Bundle

PAIR = {
    "pair_id": "p1",
    "source": "ours",
    "question": "Which?",
    "response_model": "m",
    "response_A": "this",
    "response_B": "that",
    "label": "A>B",
}
DECISION = {
    "pair_id": "p1",
    "source": "ours",
    "label": "A>B",
    "response_model": "m",
    "judge_name": "j",
    "judge_model": "k",
    "decision_AB": "A>B",
    "decision_BA": "A>B",
}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def archive(tmp_path):
    def make(name="data.zip", **files):
        with zipfile.ZipFile(tmp_path / name, "w") as packed:
            for file, content in files.items():
                packed.writestr(file.replace("__", "/").replace("_jsonl", ".jsonl"), content)
        return tmp_path / name

    return make


def run(team, path, **options):
    job = services.start_import(team.researcher, path, name="bundle", queue=False, **options)
    services.run_import(job.pk)
    job.refresh_from_db()
    return job


def test_files_given_together_add_to_one_another(team, archive):
    path = archive(pairs_gpt4o_jsonl=lines(PAIR), judgments_jsonl=lines(DECISION), README="no data")
    job = run(team, path)
    assert job.state == ImportJob.State.FINISHED and job.format == "judgebench", job.rejected
    preferences = job.version.members.get().example.content["preferences"]
    assert [(each["rater"], each["strength"]) for each in preferences] == [("gold", -2), ("j:k AB", -2), ("j:k BA", 2)]
    assert job.version.lineage["files"] == ["pairs_gpt4o.jsonl"]


def test_a_problem_names_its_file_and_line(team, archive):
    path = archive(a_jsonl=lines({"key": "x", "prompt": "Hi"}), b_jsonl=lines({"key": "y", "prompt": "Hi"}) + "{oops\n")
    job = run(team, path)
    assert [(each["file"], each["line"]) for each in job.rejected] == [("b.jsonl", 2)]


def test_a_key_repeated_in_another_file_names_both(team, archive):
    path = archive(a_jsonl=lines({"key": "x", "prompt": "Hi"}), b_jsonl=lines({"key": "x", "prompt": "Ho"}))
    job = run(team, path, keep_good=True)
    assert job.counts["examples"] == 1
    assert job.rejected == [
        {"line": 1, "field": "key", "reason": "the key 'x' is that of line 1 of a.jsonl already", "file": "b.jsonl"}
    ]


def test_without_its_neighbour_an_id_is_not_taken_for_a_text(import_rows):
    job = import_rows([DECISION])
    content = job.version.members.get().example.content
    assert content["tags"] == ["text missing"]
    assert all("pairs_gpt4o.jsonl" in response["text"] for response in content["responses"])


def test_the_preview_of_an_archive_lists_its_files_and_rows(archive):
    shown = preview(archive(a_jsonl=lines({"key": "x", "prompt": "Hi"})), "data.zip")
    assert shown["files"] == ["a.jsonl"] and shown["good"] == 1


def test_an_archive_without_files_or_damaged_is_refused(team, archive, tmp_path):
    with pytest.raises(Invalid) as empty:
        run(team, archive(README="nothing"))
    assert empty.value.fields == {"file": "holds no files"}
    broken = archive(name="broken.zip", a_jsonl=lines({"key": "x", "prompt": "Hi"} | {"meta": {"n": list(range(999))}}))
    data = bytearray(broken.read_bytes())
    data[60:80] = bytes(20)
    broken.write_bytes(data)
    job = run(team, broken, format="touchstone")
    assert job.state == ImportJob.State.FAILED and job.rejected


def test_what_lies_beside_an_archive_is_no_part_of_it(tmp_path, archive):
    (tmp_path / "secret.jsonl").write_text(lines(PAIR))
    bundle = Bundle(archive(name="x.zip", a_jsonl="{}"))
    assert list(bundle.beside("a.jsonl").rows("secret.jsonl")) == []


def test_an_object_over_several_lines_is_one_row(import_rows):
    tree = {"id": "n", "requirements": "All", "weight": 1, "sub_tasks": []}
    job = import_rows(json.dumps(tree, indent=2), file_name="paper.json")
    assert job.format == "paperbench" and job.counts["criteria"] == 1, job.rejected


def test_the_preview_counts_rows_whose_text_is_in_a_file_that_did_not_come_along(archive, tmp_path):
    (alone := tmp_path / "judgments.jsonl").write_text(lines(DECISION))
    assert preview(alone, alone.name)["incomplete"] == 1
    assert (
        preview(archive(pairs_gpt4o_jsonl=lines(PAIR), judgments_jsonl=lines(DECISION)), "data.zip")["incomplete"] == 0
    )

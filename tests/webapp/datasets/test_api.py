"""Datasets over the API. An export that is imported again gives the same version."""

import json
import tempfile
from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.team import ApiClient
from trainer.contracts import Example, jsonlines
from webapp.datasets import queries
from webapp.datasets.columns.filters import Filters
from webapp.datasets.columns.prompt_hashes import hashes
from webapp.datasets.ingest import services
from webapp.datasets.models import ImportJob

from .conftest import row


def upload(api, rows, **form):
    file = SimpleUploadedFile("rows.jsonl", "".join(json.dumps(each) + "\n" for each in rows).encode())
    return api.client.post("/api/v1/datasets/import", {"file": file, "name": "demo", **form})


def exported(response) -> str:
    return b"".join(response.streaming_content).decode()


def test_a_file_goes_in_and_comes_out(api, eager, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer = upload(api, [row("e1", split="train"), row("e2", split="heldout")])
    assert answer.status_code == 202
    job = api.get(f"/imports/{answer.json()['id']}").json()
    assert job["state"] == "finished" and job["counts"]["heldout"] == 1
    dataset = job["version"]["dataset_id"]
    assert api.get("/datasets").json()["items"][0]["latest"]["digest"] == job["version"]["digest"]
    assert api.get(f"/datasets/{dataset}/versions").json()["items"][0]["number"] == 1
    frozen = api.post(f"/datasets/{dataset}/versions/1/freeze").json()
    assert frozen["state"] == "frozen" and frozen["frozen_at"]


def test_a_refused_file_answers_with_its_lines(api, eager, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer = upload(api, [row("e1"), {"key": "e2"}])
    job = api.get(f"/imports/{answer.json()['id']}").json()
    assert job["state"] == "failed" and job["version"] is None
    assert job["rejected"] == [{"line": 2, "field": "prompt", "reason": "is missing"}]


def test_an_import_that_waits_can_be_cancelled_and_one_that_is_over_cannot(api, import_rows):
    queued = upload(api, [row("e1")]).json()  # no worker runs in this test
    assert (queued["state"], queued["cancel_asked"]) == ("queued", False)
    for _ in range(2):
        found = api.post(f"/imports/{queued['id']}/cancel")
        assert (found.status_code, found.json()["state"]) == (200, "cancelled")
    assert api.get("/imports").json()["items"][0]["error"] == "The import was cancelled. Nothing was imported."
    late = api.post(f"/imports/{import_rows([row()]).pk}/cancel")
    assert (late.status_code, late.json()["error"]["code"]) == (409, "no_such_move")


def test_wrong_requests_name_their_field(api):
    assert upload(api, [row()], format="nope").json()["error"]["fields"][0]["path"] == "format"
    assert upload(api, [row()], mapping="{").json()["error"]["fields"][0]["path"] == "mapping"
    assert upload(api, [row()], mapping='{"promt": "x"}', format="table").status_code == 422
    assert api.client.post("/api/v1/datasets/import", {"name": "x"}).status_code == 422
    assert not ImportJob.objects.exists()


def test_examples_are_paged_to_the_end_without_gap_or_repeat(import_rows, api):
    version = import_rows([row(f"e{i}", split="train" if i % 2 else "heldout") for i in range(25)]).version
    url, seen, cursor = f"/datasets/{version.dataset_id}/versions/1/examples", [], None
    while True:
        page = api.get(url, limit=4, split="train", **({"cursor": cursor} if cursor else {})).json()
        seen += [item["key"] for item in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert seen == [f"e{i}" for i in range(1, 25, 2)]
    assert api.get(url, cursor="x").status_code == 422
    assert api.get(url, limit=0).status_code == 422


def test_a_filter_on_a_value_the_version_lacks_finds_nothing(import_rows):
    version = import_rows([row("e1", domain="maths"), row("e2")]).version
    found = [queries.examples(version, Filters(domain=name)).items for name in ("maths", "history")]
    assert list(map(len, found)) == [1, 0]


def test_the_preview_writes_nothing(api):
    file = SimpleUploadedFile("t.csv", b"question,answer\nWhy?,Because\n")
    shown = api.client.post("/api/v1/datasets/preview", {"file": file}).json()
    assert shown["format"] == "table" and shown["mapping"] == {"prompt": "question", "response": "answer"}
    assert shown["examples"][0]["responses"][0]["text"] == "Because" and shown["unread"] == []
    file = SimpleUploadedFile("t.csv", b"question,answer,score\nWhy?,Because,3\n")
    assert api.client.post("/api/v1/datasets/preview", {"file": file}).json()["unread"] == ["score"]
    assert not ImportJob.objects.exists()


def test_a_mapping_that_names_no_column_of_the_file_is_refused_at_its_field(api):
    table, rows = b"question,rules\nWhy?,Short\n", [{"question": "Why?", "rules": "Short"}]
    mapping = '{"prompt": "question", "rubric": "ruels"}'
    file = SimpleUploadedFile("t.csv", table)
    shown = api.client.post("/api/v1/datasets/preview", {"file": file, "mapping": mapping})
    sent = upload(api, rows, mapping=mapping, format="table")
    for answer in (shown, sent):
        assert answer.status_code == 422
        assert answer.json()["error"]["fields"] == [
            {
                "path": "mapping.rubric",
                "message": "no row has the column ruels; the rows have question, rules",
            }
        ]
    assert not ImportJob.objects.exists()


def test_preview_and_import_refuse_a_mapping_with_the_same_words(api):
    pair = {"prompt": "Hi", "chosen": "a", "rejected": "b"}
    for mapping, format in (('{"prompt": "prompt"}', "auto"), ('{"promt": "prompt"}', "table")):
        file = SimpleUploadedFile("rows.jsonl", json.dumps(pair).encode())
        shown = api.client.post("/api/v1/datasets/preview", {"file": file, "mapping": mapping, "format": format})
        sent = upload(api, [pair], mapping=mapping, format=format)
        assert shown.status_code == sent.status_code == 422
        assert shown.json()["error"]["message"] == sent.json()["error"]["message"]
        assert shown.json()["error"]["fields"] == sent.json()["error"]["fields"]
    assert not ImportJob.objects.exists()


def test_others_and_small_roles_get_nothing(import_rows, team):
    version = import_rows([row()]).version
    urls = [f"/datasets/{version.dataset_id}", f"/datasets/{version.dataset_id}/versions/1/export"]
    stranger, annotator, reviewer = map(ApiClient, (team.outsider, team.annotator, team.reviewer))
    assert [stranger.get(url).status_code for url in urls] == [404, 404]
    assert [annotator.get(url).status_code for url in [*urls, "/datasets"]] == [403] * 3
    assert reviewer.get(urls[0]).status_code == 200
    assert reviewer.post(f"{urls[0]}/versions/1/freeze").status_code == 403
    assert upload(reviewer, [row()]).status_code == 403


texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
records = st.fixed_dictionaries(
    {
        "key": st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=30),
        "prompt": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(["user", "system"]), "content": texts}),
            min_size=1,
            max_size=2,
        ),
    },
    optional={
        "split": st.sampled_from(["train", "heldout"]),
        "domain": st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=30),
        "reference": texts,
        "meta": st.dictionaries(texts, values, max_size=3),
        "rubric": st.fixed_dictionaries(
            {"criteria": st.just([{"text": "t", "points": 1.5}, {"text": "u", "points": -1e-7}])}
        ),
    },
)


def prompt_hash(record):
    """Rows with the same prompt on two sides would be refused."""
    return hashes(Example.model_validate({"key": "k", "prompt": record["prompt"]})).prompt


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(records, min_size=1, max_size=5, unique_by=(lambda record: record["key"], prompt_hash)))  # type: ignore[arg-type,return-value]
def test_export_and_import_give_the_identical_digest(team, rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"

        def imported(text, name):
            path.write_text(text, encoding="utf-8", newline="\n")
            job = services.start_import(team.researcher, path, name=name, format="touchstone", queue=False)
            services.run_import(job.pk)
            job.refresh_from_db()
            assert job.version, (job.error, job.rejected)
            return job.version

        first = imported("".join(json.dumps(each) + "\n" for each in rows), f"first {path}")
        lines = "".join(line + "\n" for _, line in queries.stream_canonical(first))
        assert imported(lines, f"second {path}").digest == first.digest
        team.researcher.workspace.datasets.all().delete()


def test_the_export_streams_the_canonical_lines_in_order(import_rows, api):
    last = row("a", reference="ü", split="train")
    version = import_rows([row("b"), last]).version
    text = exported(api.get(f"/datasets/{version.dataset_id}/versions/1/export"))
    assert [row["key"] for row in jsonlines.rows(text)] == ["b", "a"]
    assert jsonlines.lines(text)[1] == Example.model_validate(last).canonical()


def test_a_list_of_imports_costs_the_same_however_long(import_rows, api):
    def cost():
        with CaptureQueriesContext(connection) as captured:
            listed = api.get("/imports").json()["items"]
        return len(listed), len(captured)

    import_rows([row("e1")])
    cost()  # the first request writes down that the token was used
    one, before = cost()
    for i in range(3):
        import_rows([row(f"e{i}"), {"key": "bad"}], name=f"set {i}", keep_good=True)
    assert (one, cost()) == (1, (4, before))

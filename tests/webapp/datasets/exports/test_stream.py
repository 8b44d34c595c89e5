"""Exports: the files for trainers, the import of exported files, and reports of the examples that are left out."""

import io
import json
import re
import zipfile
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.team import ApiClient
from trainer.contracts import Example
from webapp.datasets.columns.prompt_hashes import hashes
from webapp.datasets.exports import data_card, stream
from webapp.datasets.formats import label_origin
from webapp.datasets.formats.exporters import REGISTRY
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import Dataset
from webapp.datasets.versions import services as datasets

from ..test_api import exported

READ_BACK = [(each.name, kind) for each in REGISTRY.values() for kind in each.kinds]


def full(key="e1", **extra):
    """An example with a value in every field, in scripts that are written from left to right and from right to left."""
    return {
        "key": key,
        "prompt": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"为什么天空是蓝色的？ $E=mc^2$ ({key})"},
        ],
        "split": "train",
        "domain": "physics",
        "source": "exam",
        "tags": ["theme:light", "hard"],
        "rubric": {
            "criteria": [
                {"id": "c7", "text": "Names Rayleigh", "points": 5, "importance": "essential", "tags": ["axis"]},
                {
                    "id": "c8",
                    "text": "Under 40 words",
                    "points": 2,
                    "kind": "hard",
                    "verifier": {"name": "word_count", "args": {"max": 40}},
                },
            ]
        },
        "responses": [
            {"id": "x", "text": "لأن الهواء يبعثر الأزرق", "origin": "model-1"},
            {"id": "y", "text": "```python\nprint('blue')\n```", "tags": ["code"]},
            {"id": "z", "text": "Because."},
        ],
        "preferences": [
            {
                "a": "x",
                "b": "y",
                "strength": -3,
                "rater": "p1",
                "reasons": [{"text": "right", "response": "x", "start": 0, "end": 3}],
            },
            {"a": "y", "b": "x", "strength": 1, "rater": "p2"},
            {"a": "z", "b": "x", "strength": 2, "rater": "p1"},
            {"a": "y", "b": "z", "verdict": "both_bad"},
        ],
        "reference": "Rayleigh scattering.",
        "meta": {"year": 2026, "nested": {"a": [1, None]}},
        **extra,
    }


@pytest.fixture
def version(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Sky", licence="CC-BY-4.0")
    records = [Example.model_validate(full(f"e{i}", split=["train", "heldout"][i % 2])) for i in range(4)]
    return datasets.new_version(team.researcher, dataset, records, None, {"from": "run", "run": 7})


def file_of(version, format, kind="jsonl", **options):
    return b"".join(stream.chunks(version, stream.order(format, kind, **options)))


@pytest.mark.parametrize(("format", "kind"), READ_BACK)
def test_what_is_read_back_has_the_identical_digest(version, import_rows, format, kind):
    job = import_rows(file_of(version, format, kind), name="Again", file_name=f"sky.{kind}")
    assert (job.rejected, job.version.digest) == ([], version.digest)


@pytest.mark.parametrize(("format", "kind"), READ_BACK)
def test_a_layout_that_is_chosen_by_hand_loses_nothing_of_our_own_export(version, import_rows, format, kind):
    """`auto` finds the column with what the layout has no place for. Somebody who names the layout means the same file."""
    chosen = REGISTRY[format].importer
    content = file_of(version, format, kind)
    job = import_rows(content, name="Chosen", file_name=f"sky.{kind}", format=chosen)
    assert (job.rejected, job.version.digest) == ([], version.digest)
    archive = file_of(version, format, kind, archive=True)
    job = import_rows(archive, name="Packed", file_name="sky.zip", format=chosen)
    assert (job.rejected, job.version.digest) == ([], version.digest)


@pytest.mark.parametrize(("format", "kind"), READ_BACK)
def test_a_pair_of_equal_texts_comes_back_too(team, import_rows, format, kind):
    """The importer of this format refuses such a pair in a file of other pairs, because there it can only be a mistake."""
    dataset = Dataset.objects.create(workspace=team.workspace, name="Equal")
    same = [{"id": each, "text": "Because."} for each in "xy"]
    record = Example.model_validate(full(responses=same, preferences=[{"a": "x", "b": "y", "strength": -2}]))
    version = datasets.new_version(team.researcher, dataset, [record], None, {"from": "run"})
    for chosen in ("auto", REGISTRY[format].importer):
        again = import_rows(file_of(version, format, kind), name="Back", file_name=f"back.{kind}", format=chosen)
        assert (again.rejected, again.version.digest) == ([], version.digest)


@pytest.mark.parametrize(("format", "kind"), READ_BACK)
@pytest.mark.parametrize("meta", [{"touchstone": "a benchmark"}, {"ideal_completions_data": None}], ids=str)
def test_a_field_in_meta_with_the_name_of_a_column_of_ours_comes_back(team, import_rows, format, kind, meta):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Names")
    version = datasets.new_version(
        team.researcher, dataset, [Example.model_validate(full(meta=meta))], None, {"from": "run"}
    )
    again = import_rows(file_of(version, format, kind), name="Back", file_name=f"back.{kind}")
    assert (again.rejected, again.version.digest) == ([], version.digest)


def test_a_column_that_is_nested_too_deep_refuses_its_row_and_not_the_import(version, import_rows):
    """Somebody chose the layout, so every row is asked whether an export of ours wrote it."""
    rows = [json.loads(line) for line in file_of(version, "trl_preference").splitlines()]
    rows[0]["touchstone"] = "[" * 3_000
    job = import_rows(rows, name="Deep", format=REGISTRY["trl_preference"].importer, keep_good=True)
    assert (job.state, [(each["line"], each["field"]) for each in job.rejected]) == ("finished", [(1, "touchstone")])


def test_an_edit_in_the_file_is_kept(version, import_rows):
    rows = [json.loads(line) for line in file_of(version, "trl_preference").splitlines()]
    rows[0]["chosen"][0]["content"] = "Because air scatters blue light."
    job = import_rows(rows, name="Edited")
    assert job.version.digest != version.digest
    texts = [response.text for response in job.version.members.get(position=0).example.record.responses]
    assert "Because air scatters blue light." in texts


def test_each_decided_pair_is_a_row_with_the_mean_of_its_raters(version):
    rows = [json.loads(line) for line in file_of(version, "trl_preference").splitlines()]
    first = [(row["chosen"][0]["content"][:8], row["rejected"][0]["content"][:8], row["strength"]) for row in rows[:2]]
    assert first == [("لأن الهو", "```pytho", 2.0), ("لأن الهو", "Because.", 2.0)]
    assert len(rows) == 8  # a pair in which both are bad cannot be learnt from


@pytest.mark.parametrize("format", REGISTRY)
def test_every_layout_is_loaded_by_the_datasets_library(version, format, tmp_path):
    datasets = pytest.importorskip("datasets")
    for kind in REGISTRY[format].kinds:
        path = tmp_path / f"{format}.{kind}"
        path.write_bytes(file_of(version, format, kind))
        loader = "json" if kind == "jsonl" else kind
        loaded = datasets.load_dataset(loader, data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
        assert loaded.num_rows >= 4


def test_a_side_can_be_taken_alone(version):
    rows = [json.loads(line) for line in file_of(version, "trl_sft", split="heldout").splitlines()]
    assert {row["split"] for row in rows} == {"heldout"} and len(rows) == 2
    assert rows[0]["completion"][0]["content"].startswith("لأن")


def test_verl_and_openrlhf_hold_what_their_readers_look_for(version):
    [first, *_] = pq.read_table(io.BytesIO(file_of(version, "verl", "parquet"))).to_pylist()
    assert (first["data_source"], first["ability"], first["reward_model"]["style"]) == ("exam", "physics", "rubric")
    assert json.loads(first["reward_model"]["ground_truth"])["criteria"][0]["points"] == 5
    assert first["extra_info"]["index"] == "e0"
    [pair, *_] = [json.loads(line) for line in file_of(version, "openrlhf_preference").splitlines()]
    assert [message["role"] for message in pair["chosen"]] == ["system", "user", "assistant"]


def test_the_column_of_extras_can_be_left_out_and_the_loss_is_named(version):
    rows = [json.loads(line) for line in file_of(version, "trl_preference", extras=False).splitlines()]
    assert "touchstone" not in rows[0]
    lost = stream.leaves_out(REGISTRY["trl_preference"], version, extras=False)
    assert "rubrics" in lost and stream.leaves_out(REGISTRY["trl_preference"], version) == []
    assert any("raters and reasons" in words for words in stream.leaves_out(REGISTRY["trl_sft"], version, extras=False))


def test_a_layout_that_nothing_fits_is_refused_and_what_sft_leaves_out_is_told(team, api):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Prompts")
    asked = {"prompt": [{"role": "user", "content": "?"}]}
    records = [{"key": "a", **asked}, {"key": "b", "reference": "Yes.", **asked}]
    records.append({"key": "c", "responses": [{"id": "r", "text": "No."}], **asked})
    version = datasets.new_version(
        team.researcher, dataset, map(Example.model_validate, records), None, {"from": "import"}
    )
    base = f"/datasets/{dataset.pk}/versions/1/export"
    for format in ("trl_preference", "openrlhf_preference", "healthbench", "rubricbench"):
        answer = api.get(base, format=format)
        assert answer.status_code == 422 and "this version has none" in answer.json()["error"]["fields"][0]["message"]
    assert stream.leaves_out(REGISTRY["trl_preference"], version) == [
        "every example: none has a pair with a better side"
    ]
    assert stream.leaves_out(REGISTRY["trl_sft"], version) == ["up to 1 example without an answer to imitate"]
    assert len(file_of(version, "trl_sft").splitlines()) == 2


def test_the_archive_holds_data_and_card(version, team):
    archive = zipfile.ZipFile(io.BytesIO(file_of(version, "trl_preference", "parquet", archive=True)))
    names = ["data/train.parquet", "data/heldout.parquet", "README.md", "card.json", "croissant.json"]
    assert archive.namelist() == names and archive.testzip() is None
    told = json.loads(archive.read("card.json"))
    assert told["digest"] == version.digest and told["licence"] == "CC-BY-4.0"
    assert told["agreement"] == {"pairwise": 1.0, "examples": 4} and told["labels"]["first"] == 4
    assert told["lineage"][0]["origin"] == "Produced by run 7"
    assert "# Sky, version 1" in archive.read("README.md").decode()


@pytest.mark.parametrize(("format", "kind"), READ_BACK)
def test_the_datasets_library_loads_an_archive_as_splits(version, import_rows, format, kind, tmp_path):
    datasets = pytest.importorskip("datasets")
    content = file_of(version, format, kind, archive=True)
    folder = tmp_path / "sky"
    zipfile.ZipFile(io.BytesIO(content)).extractall(folder)
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train", "heldout"}
    for split in loaded:
        keys = {row["key"] for row in loaded[split]} if "key" in loaded[split].column_names else set()
        assert keys <= {"e0", "e2"} if split == "train" else keys <= {"e1", "e3"}
    again = import_rows(content, name="Again", file_name="sky.zip")
    assert (again.rejected, again.version.digest) == ([], version.digest)


def test_a_split_without_a_row_has_no_file_and_one_without_a_side_has_its_own(team, tmp_path):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Parts")
    bare = {"prompt": [{"role": "user", "content": "?"}]}
    records = [
        full("a"),
        {"key": "b", "split": "heldout", **bare},
        {"key": "c", "prompt": [{"role": "user", "content": "!"}]},
    ]
    version = datasets.new_version(
        team.researcher, dataset, map(Example.model_validate, records), None, {"from": "import"}
    )

    def names(format):
        return zipfile.ZipFile(io.BytesIO(file_of(version, format, archive=True))).namelist()[:-3]

    assert names("touchstone") == ["data/train.jsonl", "data/heldout.jsonl", "data/unsplit.jsonl"]
    assert names("trl_preference") == ["data/train.jsonl"]
    library = pytest.importorskip("datasets")
    zipfile.ZipFile(io.BytesIO(file_of(version, "touchstone", archive=True))).extractall(tmp_path / "parts")
    assert library.get_dataset_config_names(str(tmp_path / "parts")) == ["default"]
    loaded = library.load_dataset(str(tmp_path / "parts"), "default", cache_dir=str(tmp_path / "cache"))
    assert {split: list(rows["key"]) for split, rows in loaded.items()} == {
        "train": ["a"], "heldout": ["b"], "unsplit": ["c"],
    }  # fmt: skip
    assert file_of(version, "touchstone", split="unsplit").count(b"\n") == 1


def test_agreement_nobody_can_have_is_called_undefined(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Alone")
    lone = Example.model_validate({"key": "a", "prompt": [{"role": "user", "content": "?"}]})
    version = datasets.new_version(team.researcher, dataset, [lone], None, {"from": "run"})
    assert "undefined" in data_card.build(version)["agreement"] and "Undefined" in data_card.markdown(
        data_card.build(version)
    )


def test_the_api_lists_layouts_and_streams_files(version, api):
    base = f"/datasets/{version.dataset_id}/versions/1"
    listed = {each["name"]: each for each in api.get(f"{base}/export/formats").json()["items"]}
    assert listed["touchstone"]["leaves_out"] == [] and listed["trl_preference"]["reads_back"]
    answer = api.get(f"{base}/export", format="native")
    assert answer["Content-Disposition"] == 'attachment; filename="Sky-v1-touchstone.jsonl"'
    assert exported(answer).count("\n") == 4
    assert api.get(f"{base}/export", format="csv").json()["error"]["fields"][0]["path"] == "format"
    assert api.get(f"{base}/export", format="healthbench", file="parquet").status_code == 422
    assert api.get(f"{base}/card").json()["version"] == 1
    assert api.get(f"{base}/card", format="markdown").content.startswith(b"---\n")


def test_others_get_no_file(version, team):
    base = f"/datasets/{version.dataset_id}/versions/1"
    for path in (f"{base}/export", f"{base}/card", f"{base}/export/formats"):
        assert ApiClient(team.outsider).get(path).status_code == 404
        assert ApiClient(team.annotator).get(path).status_code == 403
        assert ApiClient(team.reviewer).get(path).status_code == 200


word = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=12)
response_ids = ["a", "b", "c"]


@st.composite
def examples(draw):
    data = full(draw(st.text("abcdef", min_size=1, max_size=4)))
    for name in ("rubric", "tags", "reference", "meta", "domain", "source"):
        if draw(st.booleans()):
            del data[name]
    data["responses"] = [{"id": each, "text": draw(word)} for each in response_ids]
    pairs = st.tuples(st.sampled_from(response_ids), st.sampled_from(response_ids)).filter(
        lambda pair: pair[0] != pair[1]
    )
    data["preferences"] = [
        {"a": a, "b": b, "strength": draw(st.integers(-3, 3))} for a, b in draw(st.lists(pairs, min_size=1, max_size=4))
    ]
    data["prompt"][1]["content"] = draw(word.filter(lambda text: text.strip()))
    # one prompt is on one side, and an example without a side would get one
    data["split"] = ("train", "heldout")[hashes(Example.model_validate(data)).prompt % 2]
    return Example.model_validate(data)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(examples(), min_size=1, max_size=4, unique_by=lambda each: each.key),
    chosen=st.sampled_from(READ_BACK),
)
def test_any_version_comes_back_from_any_layout_that_has_all_its_examples(team, tmp_path, records, chosen):
    format, kind = chosen
    records = [each for each in records if any(True for _ in REGISTRY[format].rows(each))]
    if not records:
        return
    dataset = Dataset.objects.create(workspace=team.workspace, name="There")
    try:
        version = datasets.new_version(team.researcher, dataset, records, None, {"from": "run"})
        path = tmp_path / f"there.{kind}"
        path.write_bytes(file_of(version, format, kind))
        job = imports.start_import(team.researcher, path, name="Back", queue=False)
        imports.run_import(job.pk)
        job.refresh_from_db()
        assert (job.rejected, job.version.digest) == ([], version.digest)
    finally:
        Dataset.objects.all().delete()


@pytest.mark.parametrize(
    ("file", "format"),
    [
        ("healthbench_sample/healthbench_30.jsonl", "healthbench"),
        ("hh_rlhf/harmless-base-test.jsonl.gz", "trl_preference"),
        ("pandalm/testset-v1.json", "touchstone"),
    ],
)
def test_real_files_come_back_with_the_identical_digest(import_rows, shared, file, format):
    path = shared(file)
    first = import_rows(path.read_bytes(), name="There", file_name=path.name).version
    again = import_rows(file_of(first, format), name="Back", file_name="again.jsonl")
    assert (again.rejected, again.version.digest) == ([], first.digest)


def signed(team):
    """Three examples: one with labels of an import, one that has labels of two people of a project too, and one with a majority."""
    dataset = Dataset.objects.create(workspace=team.workspace, name="Signed")
    asked = {"prompt": [{"role": "user", "content": "?"}], "responses": [{"id": i, "text": i * 3} for i in "xy"]}
    given = [
        [("old", -1), ("", -2)],
        [("old", -3), ("annotator-1@project-7", 2), ("annotator-2@project-7", 2)],
        [("majority@project-7", -2)],
    ]
    records = [
        Example.model_validate(
            {**asked, "key": f"e{i}", "preferences": [{"a": "x", "b": "y", "strength": s, "rater": r} for r, s in said]}
        )
        for i, said in enumerate(given)
    ]
    return datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})


@pytest.mark.parametrize(("format", "kind"), [("trl_preference", "parquet"), ("openrlhf_preference", "jsonl")])
def test_every_label_says_whose_it_is(team, format, kind):
    content = file_of(signed(team), format, kind)
    rows = (
        pq.read_table(io.BytesIO(content)).to_pylist()
        if kind == "parquet"
        else [json.loads(line) for line in content.splitlines()]
    )
    assert [row["labelled_by"] for row in rows] == [
        ["imported:old", "imported"],
        ["imported:old", "annotator-1@project-7", "annotator-2@project-7"],
        ["majority@project-7"],
    ]


def test_a_rubric_says_who_wrote_it(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Rubrics")
    by = {"meta": {"rubric_by": "consolidated@project-7"}}
    bare = {"reference": None}
    records = [Example.model_validate(full("e0", **bare)), Example.model_validate(full("e1", **bare, **by))]
    version = datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})
    for format in ("trl_rl", "verl", "openrlhf_prompt", "healthbench", "rubricbench"):
        rows = [json.loads(line) for line in file_of(version, format).splitlines()]
        assert [row["labelled_by"][-1] for row in rows] == ["imported", "consolidated@project-7"], format


def whose(team):
    """One example for each origin of a label, by its key."""
    dataset = Dataset.objects.create(workspace=team.workspace, name="Whose")
    asked = {"prompt": [{"role": "user", "content": "?"}], "responses": [{"id": i, "text": i * 3} for i in "xy"]}
    rubric = {"criteria": [{"id": "c", "text": "Is short", "points": 1}]}
    raters = {
        "imported": ["old", ""],
        "one": ["annotator-3@project-1"],
        "majority": ["majority@project-1"],
        "consolidated": ["consolidated@project-1"],
        "mixed": ["old", "unanimous@project-1"],
    }
    rows: list[dict[str, Any]] = [
        {**asked, "key": key, "preferences": [{"a": "x", "b": "y", "strength": -1, "rater": r} for r in said]}
        for key, said in raters.items()
    ]
    signed = {"rubric_by": "consolidated@project-1"}
    rows += [{**row, "key": f"{row['key']} signed", "rubric": rubric, "meta": signed} for row in rows]
    rows += [{**row, "key": f"{row['key']} given", "rubric": rubric} for row in rows[:5]]
    rows += [{**asked, "key": "reference", "responses": [], "reference": "So."}]
    rows += [{**asked, "key": "only", "responses": [{"id": "x", "text": "x", "origin": "gpt"}]}]
    records = [Example.model_validate(row) for row in rows]
    return datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})


def said_by(format, kind, content):
    """{key: the origin of the labels of its rows}. In our own JSON lines these are the raters themselves."""
    if kind == "parquet":
        rows = pq.read_table(io.BytesIO(content)).to_pylist()
    else:
        rows = [json.loads(line) for line in content.splitlines()]
    if "labelled_by" in rows[0]:
        names = ("key", "prompt_id", "case_id")
        return {next(row[name] for name in names if name in row): row["labelled_by"] for row in rows}
    assert format == "touchstone"
    examples = [Example.model_validate(row) for row in rows]
    told = {each.key: label_origin.label_origins(each.preferences) + label_origin.of_rubric(each) for each in examples}
    return {each.key: told[each.key] + label_origin.of_reference(each) for each in examples}


WHOSE = re.compile(r"(annotator-\d+|majority|consolidated|unanimous)@project-\d+|imported(:.+)?")


@pytest.mark.parametrize(("format", "kind"), READ_BACK)
def test_every_label_of_every_layout_says_whose_it_is_and_imported_ones_can_be_left_out(team, format, kind):
    version = whose(team)
    every = said_by(format, kind, file_of(version, format, kind))
    assert all(WHOSE.fullmatch(name) for by in every.values() for name in by)
    unlabelled = {key for key, by in every.items() if not by}
    assert unlabelled <= {"only", *(key for key in every if " " not in key)}, "neither rubric nor pair in this layout"
    if format == "trl_sft":
        assert (every["reference"], every["only"], every["one"]) == (
            ["imported"],
            ["imported:gpt"],
            ["annotator-3@project-1"],
        )
    people = said_by(format, kind, file_of(version, format, kind, imported=False))
    assert not any(label_origin.says_imported(by) for by in people.values())
    kept = {key for key, by in every.items() if by and not label_origin.says_imported(by)}
    assert kept and all(people[key] == every[key] for key in kept), "what people said stays as it is"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_imported_labels_can_be_left_out(team, import_rows, kind):
    version = signed(team)
    content = file_of(version, "trl_preference", kind, imported=False)
    rows = (
        pq.read_table(io.BytesIO(content)).to_pylist()
        if kind == "parquet"
        else [json.loads(line) for line in content.splitlines()]
    )
    assert [(row["key"], row["chosen"][0]["content"], row["strength"]) for row in rows] == [
        ("e1", "yyy", 2.0),
        ("e2", "xxx", 2.0),
    ]
    assert "imported" not in str([row["labelled_by"] for row in rows])
    native = file_of(version, "touchstone", kind, imported=False)
    job = import_rows(native, name="Back", file_name=f"back.{kind}")
    raters = [[p.rater for p in m.example.record.preferences] for m in job.version.members.order_by("position")]
    assert raters == [[], ["annotator-1@project-7", "annotator-2@project-7"], ["majority@project-7"]]


def test_the_api_and_the_page_offer_it(team, as_researcher):
    version = signed(team)
    base = f"/datasets/{version.dataset_id}/versions/1/export"
    lines = exported(ApiClient(team.reviewer).get(base, format="trl_preference", imported="false")).splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["e1", "e2"]
    page = as_researcher.get(f"{base}?labels=signed").content.decode()
    assert "imported=false" in page and "imported=false" not in as_researcher.get(base).content.decode()

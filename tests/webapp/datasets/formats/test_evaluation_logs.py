"""Files of other evaluation tools become examples. Parts that examples cannot hold are counted by name."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from trainer.contracts import Example, VerifierSpec
from trainer.verifiers import verify
from webapp.datasets.formats import openai_graders
from webapp.datasets.formats.base_importer import Alone
from webapp.datasets.formats.convert import example
from webapp.datasets.formats.importers import REGISTRY, detect
from webapp.datasets.ingest.loader import Loader
from webapp.files import budgets, members
from webapp.files.bundle import Bundle
from webapp.files.records import FileHead, RowProblem

FILES = Path(__file__).parent / "files"
EVENTS = "events of the run: its calls of models and tools"

ITEMS = [
    {"item": {"id": "h1", "headline": "Shares rise", "input": "Shares rise", "ground_truth": "Markets"}},
    {"item": {"id": "h2", "headline": "New phone", "input": "New phone", "ground_truth": "Tech {2}"}},
]
TEXT = "{{ sample.output_text }}"
TRUTH = "{{item.ground_truth}}"
EVAL: dict[str, Any] = {
    "object": "eval",
    "id": "eval_1",
    "name": "Headlines",
    "data_source_config": {"type": "custom", "schema": {}},
    "testing_criteria": [
        {"type": "string_check", "name": "exact", "input": TEXT, "reference": TRUTH, "operation": "eq"},
        {"type": "string_check", "name": "not tech", "input": TEXT, "reference": "Sports", "operation": "ne"},
        {"type": "string_check", "name": "has it", "input": TEXT, "reference": TRUTH, "operation": "ilike"},
        {
            "type": "text_similarity",
            "name": "near",
            "input": TEXT,
            "reference": TRUTH,
            "evaluation_metric": "fuzzy_match",
            "pass_threshold": 0.8,
        },
        {
            "type": "score_model",
            "name": "good",
            "model": "judge-1",
            "range": [1, 7],
            "pass_threshold": 5,
            "input": [{"role": "user", "content": f"How good is {TEXT} for {{{{item.headline}}}}?"}],
        },
        {
            "type": "label_model",
            "name": "tone",
            "model": "judge-1",
            "labels": ["calm", "shrill"],
            "passing_labels": ["calm"],
            "input": [{"role": "developer", "content": "Label the tone."}, {"role": "user", "content": TEXT}],
        },
        {"type": "python", "name": "code", "source": "def grade(sample, item):\n    raise SystemExit\n"},
        {
            "type": "string_check",
            "name": "elsewhere",
            "input": "{{item.headline}}",
            "reference": "x",
            "operation": "eq",
        },
        {"type": "string_check", "name": "lost", "input": TEXT, "reference": "{{item.nowhere}}", "operation": "eq"},
    ],
}
OUTPUT: dict[str, Any] = {
    "object": "eval.run.output_item",
    "id": "outputitem_1",
    "run_id": "evalrun_1",
    "eval_id": "eval_1",
    "created_at": 1743092076,
    "status": "pass",
    "datasource_item_id": 5,
    "datasource_item": {"input": "Shares rise", "ground_truth": "Markets"},
    "results": [{"name": "exact", "sample": None, "passed": True, "score": 1.0}],
    "sample": {
        "input": [{"role": "developer", "content": "Name the topic."}, {"role": "user", "content": "Shares rise"}],
        "output": [{"role": "assistant", "content": "Markets", "tool_calls": None}],
        "finish_reason": "stop",
        "model": "model-1",
        "error": None,
        "temperature": 1.0,
    },
}
LOG = [
    {"spec": {"completion_fns": ["m"], "eval_name": "topics", "run_id": "r1"}},
    {"run_id": "r1", "event_id": 0, "sample_id": "t.0", "type": "sampling", "data": {"prompt": [{"role": "user", "content": "2+2?"}], "sampled": ["4"]}},
    {"run_id": "r1", "event_id": 1, "sample_id": "t.1", "type": "sampling", "data": {"prompt": "3+3?", "sampled": "7"}},
    {"run_id": "r1", "event_id": 2, "sample_id": "t.0", "type": "match", "data": {"correct": True, "expected": "4", "picked": "4"}},
    {"run_id": "r1", "event_id": 3, "sample_id": "t.1", "type": "match", "data": {"correct": False, "expected": "6", "picked": None}},
    {"final_report": {"accuracy": 0.5}, "run_id": "r1"},
]  # fmt: skip
CHOICE = {
    "doc_id": 0,
    "doc": {"q": "Sky?", "choices": ["blue", "red"]},
    "target": "0",
    "arguments": {"gen_args_0": {"arg_0": "Sky?", "arg_1": " blue"}, "gen_args_1": {"arg_0": "Sky?", "arg_1": " red"}},
    "resps": [[["-1.5", "True"]], [["-4.25", "False"]]],
    "filtered_resps": [["-1.5", "True"], ["-4.25", "False"]],
    "filter": "none",
    "metrics": ["acc"],
    "doc_hash": "d",
    "prompt_hash": "p",
    "target_hash": "t",
    "acc": 1.0,
}


def lines(*rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def archive(**files: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as out:
        for name, text in files.items():
            out.writestr(name.replace("__", "."), text)
    return held.getvalue()


def examples(job) -> dict[str, Example]:
    rows = [Example.model_validate(each.example.content) for each in job.version.members.select_related("example")]
    return {row.key: row for row in rows}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("openai_evals", ITEMS[0]),
        ("openai_evals", EVAL),
        ("openai_evals", OUTPUT),
        ("openai_evals", {"object": "list", "data": [OUTPUT], "has_more": False}),
        ("openai_evals", LOG[1]),
        ("openai_evals", {"input": [{"role": "user", "content": "2+2?"}], "ideal": "4"}),
        ("openai_evals", EVAL["testing_criteria"][0]),
        ("lm_eval", CHOICE),
        ("lm_eval", {"results": {"t": {"acc,none": 1.0}}, "configs": {"t": {}}, "model_name": "m"}),
        ("inspect", {"scorer": "match", "samples": []}),
    ],
)
def test_a_row_is_known_and_no_other_format_is_as_sure(name, row):
    head = FileHead("file.jsonl", (row,))
    best, second, *_ = sorted((importer.sniff(head) for importer in REGISTRY.values()), reverse=True)
    assert detect(head).name == name and best >= second + 0.05


@pytest.mark.django_db
def test_graders_become_criteria_and_what_they_cannot_be_is_counted(import_rows):
    job = import_rows(archive(items__jsonl=lines(*ITEMS), eval__json=json.dumps(EVAL, indent=2)), file_name="evals.zip")
    assert (job.format, job.state, job.counts["examples"]) == ("openai_evals", "finished", 2), job.error
    found = examples(job)["h2"]
    assert found.reference == "Tech {2}" and found.prompt[0].content == "New phone"
    exact, other, has, good, tone = found.rubric.criteria
    assert [each.tags[0] for each in found.rubric.criteria] == ["string_check"] * 3 + ["score_model", "label_model"]
    assert [verify(exact.verifier, text).met for text in ("Tech {2}", "Tech 2", "tech {2}")] == [True, False, False]
    assert [verify(other.verifier, text).met for text in ("Sports", "Tech")] == [False, True]
    assert verify(has.verifier, "It is TECH {2}.").met and good.verifier is None
    assert good.text == "How good is [the response] for New phone?"
    assert tone.text.startswith("Label the tone.") and tone.text.endswith(
        "Met where the label, one of calm, shrill, is calm."
    )
    assert job.unsaid == {
        "python 'code': a program, which is never run here": 2,
        "string_check 'elsewhere': it does not compare the whole response": 2,
        "string_check 'lost': the item has no item.nowhere": 2,
        "text_similarity 'near': no verifier measures fuzzy_match; its text is the reference": 2,
        "score_model 'good': its score from 1 to 7, passing at 5 is met or not met here, and its model is not kept": 2,
        "label_model 'tone': its model is not kept": 2,
        "eval.json: a file without examples": 1,
    }
    assert found.meta["unsaid"] and found.meta["item"]["headline"] == "New phone"


@pytest.mark.django_db
def test_the_page_and_the_preview_name_what_is_left_out(import_rows, as_researcher):
    content = archive(items__jsonl=lines(*ITEMS), eval__json=json.dumps(EVAL))
    upload = SimpleUploadedFile("evals.zip", content)
    preview = as_researcher.post("/datasets/import/preview", {"file": upload, "format": "auto"}).content.decode()
    job = import_rows(content, file_name="evals.zip")
    page = as_researcher.get(f"/imports/{job.pk}").content.decode()
    for shown in (preview, page):
        assert "a program, which is never run here" in shown and "examples have no place: " in shown
    told = as_researcher.get(f"/api/v1/imports/{job.pk}").json()
    assert told["unsaid"] == job.unsaid


def test_a_sum_of_graders_weighs_their_points_and_another_formula_does_not():
    check = {"type": "string_check", "input": TEXT, "reference": "yes", "operation": "like"}
    multi = {
        "type": "multi",
        "name": "both",
        "graders": {"a": check | {"name": "a"}, "b": check | {"name": "b", "reference": "no"}},
        "calculate_output": "0.75 * a - b / 4",
    }
    result = openai_graders.graded([multi], {})
    assert [(each["points"], each["verifier"]["args"]["texts"]) for each in result.criteria] == [
        (0.75, ["yes"]),
        (-0.25, ["no"]),
    ]
    assert result.unsaid == []
    for formula in ("max(a, b)", "a * b", "__import__('os').system('true')", "a + c", "a / 0", "(" * 500, ""):
        equal = openai_graders.graded([multi | {"calculate_output": formula}], {})
        assert [each["points"] for each in equal.criteria] == [1.0, 1.0]
        assert equal.unsaid == ["multi 'both': its formula is not a weighted sum, so each of its parts counts the same"]


@pytest.mark.parametrize("text", ["a", "1,000 {5000}", "ÄÖ (x) [y] ^$.*+?|\\", "tab\there", "—", "  edges "])
def test_an_equality_is_decided_by_the_text_itself(text):
    check = {"type": "string_check", "name": "n", "input": TEXT, "reference": text, "operation": "eq"}
    (criterion,) = openai_graders.graded([check], {}).criteria
    spec = VerifierSpec.model_validate(criterion["verifier"])
    assert verify(spec, text).met and not verify(spec, f"{text}!").met


@pytest.mark.django_db
def test_outputs_of_runs_are_prompts_with_what_was_answered_and_graded(import_rows):
    failed = OUTPUT | {"id": "outputitem_2", "sample": OUTPUT["sample"] | {"error": {"code": "x"}, "output": []}}
    job = import_rows([{"object": "list", "data": [OUTPUT, failed], "has_more": False}])
    assert job.format == "openai_evals" and job.counts["examples"] == 2, job.rejected
    found = examples(job)["outputitem_1"]
    assert [each.role for each in found.prompt] == ["system", "user"] and found.reference == "Markets"
    assert (found.responses[0].text, found.responses[0].origin) == ("Markets", "model-1")
    assert found.meta["results"][0]["passed"] is True and found.meta["sample"]["temperature"] == 1.0
    assert job.unsaid["a response: sampling it failed (meta.sample.error)"] == 1
    assert job.unsaid["the graders of the run: its output only says what they gave (meta.results)"] == 2


@pytest.mark.django_db
def test_a_log_of_the_package_is_gathered_by_its_samples(import_rows):
    job = import_rows(LOG)
    assert job.counts["examples"] == 2, job.rejected
    found = examples(job)
    assert found["r1/t.0"].responses[0].text == "4" and found["r1/t.1"].reference == "6"
    assert found["r1/t.1"].meta["matches"] == [{"correct": False, "expected": "6", "picked": None}]


@pytest.mark.django_db
def test_graders_alone_are_refused_with_what_to_do(import_rows):
    job = import_rows(json.dumps(EVAL), file_name="eval.json")
    assert job.state == "failed" and "one zip archive" in job.rejected[0]["reason"]


@pytest.mark.django_db
def test_an_archive_that_inspect_wrote_is_read(import_rows):
    """capitals.eval was written by inspect_ai 0.3.285 (members packed with Zstandard): two samples in two epochs."""
    job = import_rows((FILES / "capitals.eval").read_bytes(), file_name="capitals.eval")
    assert (job.format, job.counts["examples"]) == ("inspect", 4), job.rejected
    found = examples(job)
    assert found.keys() == {"fr/1", "fr/2", "2/1", "2/2"}
    assert [each.content for each in found["2/1"].prompt] == ["Answer in one word.", "Capital of Italy?"]
    assert [step.text for step in found["2/1"].responses[0].steps] == ["Rome, I think"]
    assert found["2/1"].meta["target"] == ["Rome", "Roma"] and found["fr/1"].reference == "Paris"
    assert found["2/1"].meta["scores"]["match"]["value"] == "I" and found["fr/2"].meta["metadata"] == {"level": 1}
    assert job.unsaid == {
        EVENTS: 4,
        **{f"{name}: a file without examples": 1 for name in ("header.json", "reductions.json", "summaries.json")},
        **{f"_journal/{name}: a file without examples": 1 for name in ("start.json", "summaries")},
    }
    assert len({each.split for each in found.values() if each.key.startswith("fr/")}) == 1


SAMPLE: dict[str, Any] = {
    "id": 1,
    "epoch": 1,
    "input": "2+2?",
    "target": "4",
    "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
    "output": {"model": "m"},
    "scores": {},
}


def log(samples: Mapping[str, Mapping[str, Any] | str]) -> bytes:
    """A log of inspect with these samples, by the names of their files."""
    held = {"_journal/start.json": json.dumps({"version": 2, "eval": {"eval_id": "e"}, "plan": {}})}
    held |= {f"_journal/summaries/{number}.json": "[]" for number in range(len(samples) // 2)}
    texts = {
        f"samples/{name}.json": sample if isinstance(sample, str) else json.dumps(sample, indent=2)
        for name, sample in samples.items()
    }
    return archive(**held, **texts)


@pytest.mark.django_db
def test_a_log_of_inspect_may_hold_more_samples_than_an_archive_holds_files(import_rows, monkeypatch):
    """Its samples are stored in batches as the rows of one file, not in a transaction each."""
    stored: list[int] = []
    take = Loader.take
    monkeypatch.setattr(Loader, "take", lambda loader, batch: stored.append(batch.place.count) or take(loader, batch))
    samples = {
        f"{number}_epoch_1": SAMPLE | {"id": number, "input": f"{number}?"} for number in range(budgets.MEMBERS + 10)
    }
    job = import_rows(log(samples), file_name="many.eval")
    assert (job.format, job.state, job.counts["examples"]) == ("inspect", "finished", len(samples)), job.error
    assert stored == [2_000, 10] and job.version.lineage["files"] == ["samples"]
    assert job.unsaid == {f"_journal/{name}: a file without examples": 1 for name in ("start.json", "summaries")}


@pytest.mark.django_db
def test_a_bad_sample_is_refused_by_the_name_of_its_file_and_hides_no_other(import_rows):
    samples: dict[str, dict[str, Any] | str] = {
        "1_epoch_1": SAMPLE,
        "2_epoch_1": SAMPLE | {"id": 2, "metadata": {"text": "x" * budgets.LINE}},
        "3_epoch_1": "{",
        "4_epoch_1": SAMPLE | {"id": 4, "messages": [{"role": "robot"}]},
        "5_epoch_1": SAMPLE | {"id": 5},
    }
    job = import_rows(log(samples), file_name="bad.eval", keep_good=True)
    assert examples(job).keys() == {"1/1", "5/1"}
    found = [(each["file"], each["line"], each["field"], each["reason"]) for each in job.rejected]
    assert [each[:3] for each in found] == [
        ("samples/2_epoch_1.json", 1, ""),
        ("samples/3_epoch_1.json", 1, ""),
        ("samples/4_epoch_1.json", 1, "messages.0.role"),
    ]
    assert "longer than" in found[0][3] and "not JSON" in found[1][3]


def damaged(packed: str, name: str) -> bytes:
    """A log of inspect in which the file of one sample is not what was packed."""
    if packed == "zstd":
        content = bytearray((FILES / "capitals.eval").read_bytes())
        entry = content.rindex(b"PK\x01\x02", 0, content.rindex(name.encode()))
        content[entry + 16] ^= 1  # its checksum
        return bytes(content)
    held, out = zipfile.ZipFile(io.BytesIO(log({"1_epoch_1": SAMPLE, "2_epoch_1": SAMPLE | {"id": 2}}))), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_BZIP2) as again:
        for each in held.namelist():
            again.writestr(each, held.read(each))
    content = bytearray(out.getvalue())
    content[content.index(b"BZh", content.index(name.encode()))] ^= 1
    return bytes(content)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("packed", "says", "kept"), [("zstd", "checksum", {"fr/1", "fr/2", "2/2"}), ("bzip2", "Invalid data", {"1/1"})]
)
def test_a_damaged_sample_is_refused_and_hides_no_other(import_rows, packed, says, kept):
    job = import_rows(damaged(packed, "samples/2_epoch_1.json"), file_name="bad.eval", keep_good=True)
    assert (job.state, [each["file"] for each in job.rejected]) == ("finished", ["samples/2_epoch_1.json"]), job.error
    assert says in job.rejected[0]["reason"] and examples(job).keys() == kept


def test_a_sample_is_read_whole_in_any_number_of_pieces(monkeypatch):
    def contents() -> list[bytes | RowProblem]:
        with Bundle(FILES / "capitals.eval").opened("samples") as (stream, _):
            return list(stream)

    whole = contents()
    monkeypatch.setattr(members, "PIECE", 7)
    assert contents() == whole and len(whole) == 4
    assert all(isinstance(json.loads(each), dict) for each in whole if isinstance(each, bytes))


@pytest.mark.django_db
def test_a_sample_that_ended_before_an_answer_is_a_prompt_without_one(import_rows):
    """As inspect_ai 0.3.285 writes it, if a tool or a sandbox failed or a limit came first."""
    silent = SAMPLE["messages"][:1]
    error = {"message": "RuntimeError('broken')", "traceback": "…"}
    samples = {
        "1_epoch_1": SAMPLE,
        "2_epoch_1": SAMPLE | {"id": 2, "messages": silent, "error": error},
        "3_epoch_1": SAMPLE | {"id": 3, "messages": [], "error": error},
        "4_epoch_1": SAMPLE | {"id": 4, "messages": silent, "limit": {"type": "time", "limit": 1.0}},
        "5_epoch_1": SAMPLE | {"id": 5, "messages": [], "limit": {"type": "token", "limit": 1.0}},
    }
    job = import_rows(log(samples), file_name="errors.eval")
    assert job.counts["examples"] == 5, job.rejected
    found = examples(job)
    assert [len(found[f"{number}/1"].responses) for number in (1, 2, 3, 4, 5)] == [1, 0, 0, 0, 0]
    assert found["3/1"].prompt[0].content == "2+2?" and found["2/1"].meta["error"] == error
    ended = "a response: the sample ended before the model answered"
    assert (job.unsaid[f"{ended} (meta.error)"], job.unsaid[f"{ended} (meta.limit)"]) == (2, 2)


@pytest.mark.django_db
def test_samples_of_lm_eval_are_read_with_the_model_beside_them(import_rows):
    generated = {
        **CHOICE,
        "arguments": {"gen_args_0": {"arg_0": "2+2=", "arg_1": {"until": ["\n"], "temperature": 0.0}}},
        "resps": [["4, I say"]],
        "filtered_resps": ["4"],
        "filter": "strict",
        "target": "4",
    }
    results = {"results": {"sums": {"acc,none": 1.0}}, "configs": {"sums": {}}, "model_name": "my-model"}
    stamp = "2026-11-27T10-00-00.123456"
    held = {
        f"out/samples_sky_{stamp}.jsonl": lines(CHOICE),
        f"out/samples_sums_{stamp}.jsonl": lines(generated),
        f"out/results_{stamp}.json": json.dumps(results, indent=2),
    }
    job = import_rows(archive(**held), file_name="out.zip")
    assert (job.format, job.counts["examples"]) == ("lm_eval", 2), job.rejected
    found = examples(job)
    weighed = found["sky/0"]
    assert [each.text for each in weighed.responses] == [" blue", " red"] and weighed.meta["scores"] == {"acc": 1.0}
    assert weighed.meta["loglikelihoods"] == {"r1": -1.5, "r2": -4.25} and weighed.domain == "sky"
    never = example(
        "x", REGISTRY["lm_eval"].converter(Alone("sky")), 1, CHOICE | {"filtered_resps": ["-inf", "-1"]}, {}
    )
    assert never.meta["loglikelihoods"] == {"r1": None, "r2": -1.0}
    sampled = found["sums/0/strict"]
    assert (sampled.responses[0].text, sampled.responses[0].origin) == ("4, I say", "my-model")
    assert sampled.reference == "4" and sampled.meta["filtered"] == ["4"]


@pytest.mark.django_db
def test_an_archive_that_lm_eval_wrote_is_read(import_rows):
    """lm-eval.zip was written by lm_eval 0.4.13 with its dummy model. It keeps only those fields of the results that do not describe a
    machine.
    """
    job = import_rows((FILES / "lm-eval.zip").read_bytes(), file_name="lm-eval.zip")
    assert (job.format, job.counts["examples"]) == ("lm_eval", 6), job.rejected
    found = examples(job)
    assert found.keys() == {f"{task}/{number}" for task in ("pick", "sums") for number in range(3)}
    assert (found["sums/1"].prompt[0].content, found["sums/1"].reference) == ("2+2=", "4")
    assert (found["sums/1"].responses[0].text, found["sums/1"].responses[0].origin) == ("lol", "i82qcls7")
    assert found["pick/0"].meta["loglikelihoods"].keys() == {"r1", "r2"} and found["pick/0"].meta["scores"] == {
        "acc": 1.0
    }
    assert len(job.unsaid) == 1 and "a file without examples" in next(iter(job.unsaid))


def test_a_text_that_lm_eval_only_weighed_has_no_response():
    """The row of a task of the kind loglikelihood_rolling, as lm_eval 0.4.13 writes it."""
    told = Alone("samples_ppl_2026-11-30T12-50-10.170984.jsonl")
    row = {
        "doc_id": 0, "doc": {"question": "0+1="}, "target": "0+1=", "arguments": {"gen_args_0": {"arg_0": "0+1="}},
        "resps": [["-0.6976706401912388"]], "filtered_resps": ["-0.6976706401912388"], "filter": "none",
        "metrics": ["word_perplexity"], "word_perplexity": [-0.6976706401912388, 1],
    }  # fmt: skip
    data = REGISTRY["lm_eval"].converter(told)(row, {})
    assert "responses" not in data and data["prompt"] == [{"role": "user", "content": "0+1="}]
    assert data["meta"]["loglikelihoods"] == {"prompt": -0.6976706401912388}


@pytest.mark.parametrize(
    ("spoil", "says"), [("crc", "checksum"), ("size", "more than the directory"), ("body", "summaries.json")]
)
def test_a_member_that_is_not_what_the_archive_says_is_damaged(tmp_path, spoil, says):
    path = tmp_path / "capitals.eval"
    content = bytearray((FILES / "capitals.eval").read_bytes())
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"summaries.json"))
    begins = int.from_bytes(content[at + 42 : at + 46], "little")
    if spoil == "crc":
        content[at + 16] ^= 1
    elif spoil == "size":
        content[at + 24 : at + 28] = (10).to_bytes(4, "little")
    else:
        content[begins + 80 : begins + 120] = bytes(40)
    path.write_bytes(content)
    bundle = Bundle(path)
    with (
        pytest.raises((OSError, zipfile.BadZipFile, EOFError), match=says),
        bundle.opened("summaries.json") as (stream, _),
    ):
        stream.read()


def test_what_is_wrong_is_named_at_its_field():
    from webapp.datasets.formats.convert import example

    def problem(name, row):
        found = example("x", REGISTRY[name].converter(Alone("f.jsonl")), 1, row, {})
        assert isinstance(found, RowProblem), found
        return found.field

    assert problem("openai_evals", {"item": {"x": 1}}) == "item"
    assert (
        problem("openai_evals", {"item": {"messages": [{"role": "robot", "content": "x"}]}}) == "item.messages.0.role"
    )
    assert problem("lm_eval", CHOICE | {"arguments": []}) == "arguments"
    assert problem("lm_eval", {"results": {}, "configs": {}}) == "doc"

"""A prompt is on one side of the split: in a file, in all versions of a dataset, and for any order of the rows."""

import json
from collections import defaultdict
from importlib import import_module

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient
from trainer.contracts import Example as Record
from webapp.core.problems import Invalid
from webapp.datasets import queries
from webapp.datasets.columns import packed
from webapp.datasets.columns.filters import parse
from webapp.datasets.columns.prompt_hashes import hashes
from webapp.datasets.curation import runner
from webapp.datasets.curation import services as curating
from webapp.datasets.ingest import import_job
from webapp.datasets.leakage import leaks
from webapp.datasets.models import CurationJob, Example, ImportJob
from webapp.datasets.versions import services as datasets
from webapp.datasets.versions.split_rule import EarlierSides

PROMPTS = 40


def pair(prompt, number=0, **columns):
    return {"prompt": prompt, "chosen": f"Good {number}", "rejected": f"Bad {number}", **columns}


def sides(version):
    """The sides of each prompt. Prompts are compared without case and space."""
    found = defaultdict(set)
    for member in version.members.select_related("example"):
        record = member.example.record
        found[" ".join(record.prompt[-1].content.lower().split())].add(record.split)
    return found


def on_both(version):
    return [prompt for prompt, found in sides(version).items() if len(found) > 1]


def test_a_preference_file_with_repeated_prompts_has_none_on_both_sides(import_rows):
    """The case in which the fault was found: 37 of 129 prompts were in train and held out, because the columns split and domain were
    ignored.
    """
    rows = [pair(f"Question {i % PROMPTS}?", i, domain=f"topic {i % 3}") for i in range(4 * PROMPTS)]
    rows += [pair(f"Named {i % 9}?", i, split="test" if i % 9 < 3 else "train", domain="named") for i in range(36)]
    job = import_rows(rows, heldout_share=0.3)
    assert job.state == ImportJob.State.FINISHED, job.rejected[:3]
    found = sides(job.version)
    assert len(found) == PROMPTS + 9 and on_both(job.version) == []
    assert {found[f"named {i}?"].pop() for i in range(3)} == {"heldout"}
    assert {found[f"named {i}?"].pop() for i in range(3, 9)} == {"train"}
    assert job.version.facets["domain"] == {"topic 0": 54, "topic 1": 53, "topic 2": 53, "named": 36}
    assert "split" not in Example.objects.first().content.get("meta", {})
    held_out = sum("heldout" in each for each in found.values())
    assert 0 < held_out < PROMPTS


def test_prompts_that_differ_in_case_and_space_are_one(import_rows):
    job = import_rows([pair("What  is this?", i, split="test") for i in range(2)] + [pair("WHAT is\nthis? ", 3)])
    assert sides(job.version) == {"what is this?": {"heldout"}}


@pytest.mark.parametrize("turned", [False, True], ids=["the named row first", "the named row last"])
def test_a_row_without_a_side_follows_those_of_its_prompt_that_have_one(import_rows, turned):
    rows = [row for i in range(20) for row in (pair(f"Q{i}", 1, split="heldout"), pair(f"Q{i}", 2))]
    job = import_rows(rows[::-1] if turned else rows)
    assert job.state == ImportJob.State.FINISHED, job.rejected
    assert job.version.counts["heldout"] == 40 and not on_both(job.version)
    assert job.rows_done == 40 and job.taken == {}


def test_a_file_that_puts_a_prompt_on_both_sides_is_refused_with_the_line_or_imported_without(import_rows):
    rows = [pair("One", 1, split="train"), pair("Two", 1), pair("one ", 2, split="test")]
    job = import_rows(rows)
    assert job.state == ImportJob.State.FAILED
    assert job.rejected == [
        {
            "line": 3,
            "field": "split",
            "reason": "is heldout, but its prompt or group is train by line 1; a prompt stands on one side",
        }
    ]
    kept = import_rows(rows, keep_good=True)
    assert kept.counts["examples"] == 2 and kept.rejected_count == 1 and not on_both(kept.version)


def test_the_second_reading_of_a_large_file_settles_it_too(import_rows, monkeypatch):
    monkeypatch.setattr(import_job, "SMALL", 0)
    rows = [pair(f"Q{i}", 1) for i in range(2_500)] + [pair(f"Q{i}", 2, split="heldout") for i in range(2_500)]
    job = import_rows(rows)
    assert job.version.counts["heldout"] == 5_000 == job.rows_done


def test_a_prompt_keeps_its_side_in_all_versions(import_rows):
    first = import_rows([pair(f"Q{i}", i) for i in range(60)], heldout_share=0.5).version
    before = sides(first)
    later = import_rows([pair(f"q{i}", 100 + i) for i in range(120)], heldout_share=0.9).version
    after = sides(later)
    assert all(after[prompt] == side for prompt, side in before.items()) and not on_both(later)
    held_out = next(prompt for prompt, side in before.items() if side == {"heldout"})
    refused = import_rows([pair(held_out, 500, split="train")])
    assert refused.rejected[0]["reason"] == (
        "its prompt or group is heldout in an earlier version; a prompt stands on one side"
    )


def test_a_native_row_without_a_side_falls_on_one(import_rows):
    rows = [{"key": f"k{i}", "prompt": [{"role": "user", "content": f"Q{i}"}]} for i in range(60)]
    version = import_rows(rows).version
    assert version.counts["train"] + version.counts["heldout"] == 60 and version.counts["heldout"]


def test_a_named_group_stands_on_one_side(import_rows):
    rows = [pair(f"Q{i}", i, group=f"g{i % 12}") for i in range(120)]
    rows += [pair("Q0", 500, group="g1")]  # joins g0 and g1
    version = import_rows(rows, heldout_share=0.5).version
    found = defaultdict(set)
    for example in Example.objects.all():
        found[example.content["group"]].add(example.split)
    assert all(len(each) == 1 for each in found.values()) and found["g0"] == found["g1"]
    assert version.counts["train"] and version.counts["heldout"] and not on_both(version)


def test_a_field_can_name_the_groups(import_rows):
    rows = [pair(f"Q{i}", i, domain=f"topic {i % 12}", topic=i % 12) for i in range(120)]
    for field, name in (("domain", "one"), ("meta.topic", "two")):
        version = import_rows(rows, name=name, heldout_share=0.5, group_by=field).version
        examples = [member.example for member in version.members.select_related("example")]
        assert len({(each.domain, each.split) for each in examples}) == 12
        assert len({each.group_hash for each in examples}) == 12 and {each.split for each in examples} > {"train"}
    with pytest.raises(Invalid) as problem:
        import_rows(rows, name="one", group_by="source")
    assert list(problem.value.fields) == ["group_by"]
    with pytest.raises(Invalid):
        import_rows(rows, name="three", group_by="colour")


@pytest.fixture
def leaky(import_rows):
    """A version that was made by a release before this rule. Two prompts are on both sides."""
    rows = [pair(f"Q{i}, once", i, split="train") for i in range(2)] + [
        pair(f"Q{i}", i, split="test") for i in range(2)
    ]
    version = import_rows([*rows, pair("Q9", 9, split="test")]).version
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE datasets_example DISABLE TRIGGER content_stays")
        for example in Example.objects.filter(split="train"):
            content = example.content
            content["prompt"][0]["content"] = content["prompt"][0]["content"].removesuffix(", once")
            record = Record.model_validate(content)
            values = {"canonical": record.canonical(), "prompt_hash": hashes(record).prompt}
            Example.objects.filter(pk=example.pk).update(**values)
        cursor.execute("ALTER TABLE datasets_example ENABLE TRIGGER content_stays")
    packed.pack(version.pk)
    return version


def test_what_an_earlier_version_has_on_both_sides_neither_blocks_nor_spreads(leaky, import_rows):
    rows = [json.loads(line) for _, line in queries.stream_canonical(leaky)]
    new = {**rows[0], "key": "new", "split": None}
    job = import_rows([*rows, new, {**new, "key": "newer", "split": "heldout"}], format="touchstone")
    assert job.state == ImportJob.State.FINISHED, job.rejected
    assert Example.objects.get(key="new").split == "train" and job.counts["leaked"] == 2


def test_records_of_services_follow_the_same_rule(team):
    dataset = datasets.create_dataset(team.researcher, "Made")
    dataset.heldout_share = 0.5
    dataset.save()

    def record(number, **fields):
        return Record(key=f"k{number}", prompt=[{"role": "user", "content": f"Q{number // 3}"}], **fields)

    version = datasets.new_version(team.researcher, dataset, map(record, range(90)), None, {"from": "import"})
    assert not on_both(version) and version.counts["heldout"]
    again = datasets.new_version(team.researcher, dataset, map(record, range(1, 120)), version, {"from": "import"})
    assert not on_both(again) and sides(version).items() <= sides(again).items()
    two = [record(300, split="train"), record(301, split="heldout")]
    with pytest.raises(Invalid) as problem:
        datasets.new_version(team.researcher, dataset, two, None, {"from": "import"})
    assert problem.value.fields == {
        "records.1.split": "is heldout, but its prompt or group is train by record 0; a prompt stands on one side"
    }


def test_earlier_sides_know_what_stands_on_which():
    import numpy as np

    known = EarlierSides.of(np.array([5, -3, 5, 9]), np.array([9, 2, 0]))
    sides = ["".join(sorted(side[0] for side in known.at(unit))) for unit in (-3, 2, 5, 9, 0, 7)]
    assert sides == ["t", "h", "t", "ht", "", ""]


def test_the_migration_hashes_prompts_as_imports_do(import_rows):
    migration = import_module("webapp.datasets.migrations.0006_prompts_and_groups")
    import_rows([pair(text, 1) for text in ("Plain", "Straße ﬁne İ Ⅷ  x", "多 い\u3000文")])
    for example in Example.objects.all():
        assert migration.prompt_hash(example.content) == example.prompt_hash == hashes(example.record).prompt != 0


def test_leaks_within_and_between_versions_are_counted_at_the_same_cost(leaky, import_rows):
    def cost(*versions):
        with CaptureQueriesContext(connection) as captured:
            found = leaks.leaks([version.pk for version in versions])
        return found, len(captured)

    other = import_rows([pair(f"q{i}", 1, split="train") for i in range(8, 300)], name="other").version
    clean = import_rows([pair(f"clean {i}", 1) for i in range(5)], name="clean").version
    assert cost(clean, other)[0] == []
    [leak], one = cost(leaky)
    assert (leak.train, leak.heldout) == (leak.train, leak.train)
    assert (leak.prompts, leak.groups, leak.train_examples, leak.heldout_examples) == (2, 0, 2, 2)
    assert [each["excerpt"] for each in leak.shown] == ["Q0", "Q1"]
    found, three = cost(leaky, other, clean)
    assert [(each.train.name, each.heldout.name, each.prompts) for each in found] == [
        ("demo", "demo", 2),
        ("other", "demo", 1),
    ]
    assert one == three == 3


def test_rows_without_a_side_are_trained_on_so_they_leak(team, import_rows):
    dataset = datasets.create_dataset(team.researcher, "Unsided")
    record = Record(key="k", prompt=[{"role": "user", "content": "Same"}])
    unsided = datasets.new_version(team.researcher, dataset, [record], None, {"from": "import"})
    held_out = import_rows([pair("same", 1, split="test")]).version
    [leak] = leaks.leaks([unsided.pk, held_out.pk])
    assert (leak.train.name, leak.heldout.name, leak.prompts) == ("Unsided", "demo", 1)


def test_an_import_tells_what_other_datasets_have_on_the_other_side(import_rows):
    import_rows([pair(f"Q{i}", 1, split="test" if i % 2 else "train") for i in range(10)], name="first")
    job = import_rows([pair(f"Q{i}", 2, split="train") for i in range(1, 30)], name="second")
    [overlap] = job.overlaps["found"]
    assert (overlap["name"], overlap["heldout_there"], overlap["train_there"]) == ("first", 5, 0)
    assert (job.overlaps["compared"], job.overlaps["passed_over"]) == (1, 0)


def test_the_preview_shows_sides_and_what_others_have_on_the_other_one(import_rows, team, api, as_researcher):
    import_rows([pair(f"Q{i}", 1, split="test") for i in range(4)], name="first")
    rows = [pair(f"Q{i % 9}", i, **({"split": "train"} if i % 2 else {})) for i in range(36)]
    rows += [pair("both", 1, split="train"), pair("both", 2, split="test")]
    text = "".join(json.dumps(each) + "\n" for each in rows).encode()

    def file():
        return SimpleUploadedFile("rows.jsonl", text)

    shown = api.client.post("/api/v1/datasets/preview", {"file": file(), "name": "second"}).json()
    assert shown["sides"]["counts"] == {"train": 37, "heldout": 0}
    assert shown["sides"]["grounds"] == {"mixed": 0, "earlier": 0, "given": 19, "drawn": 18}
    assert shown["sides"]["repeated_prompts"] == 9
    assert (shown["good"], shown["problem_count"]) == (37, 1) and shown["problems"][0]["line"] == 38
    [overlap] = shown["sides"]["overlaps"]["found"]
    assert (overlap["name"], overlap["heldout_there"]) == ("first", 4)
    page = as_researcher.post("/datasets/import/preview", {"file": file(), "name": "second"}).content.decode()
    assert "37 train" in page and "4 prompts" in page and "held out in" in page
    asked = {"file": file(), "name": "second", "group_by": "colour"}
    assert api.client.post("/api/v1/datasets/preview", asked).status_code == 422


WORDS = "the quick brown fox jumps over the lazy dog while the cat sleeps on the warm wall near the old mill"


def finished(job):
    runner.run(job.pk)
    return CurationJob.objects.select_related("made", "version").get(pk=job.pk)


def test_leaks_the_same_and_nearly_the_same_are_found_and_removed_from_the_side_that_is_named(leaky, team):
    rows = [json.loads(line) for _, line in queries.stream_canonical(leaky)]
    for number, (side, text) in enumerate(
        [("train", WORDS), ("heldout", f"{WORDS}!"), ("train", f"so {WORDS}"), ("heldout", "nothing like it")]
    ):
        rows.append({**rows[0], "key": f"n{number}", "split": side, "prompt": [{"role": "user", "content": text}]})
    records = map(Record.model_validate, rows)
    version = datasets.new_version(team.researcher, leaky.dataset, records, None, {"from": "import"})
    for side, left in (("train", {"train": 0, "heldout": 5}), ("heldout", {"train": 4, "heldout": 2})):
        job = finished(curating.curate(team.researcher, version, "leaks", {"remove": side, "threshold": 0.7}))
        expected = {"train": (2, 2), "heldout": (2, 1)}[side]
        assert (job.result["exact"], job.result["near"]) == expected, job.error
        made = finished(curating.derive(team.researcher, version, parse({}), job=job)).made
        assert {name: made.counts[name] for name in left} == left
        assert leaks.leaks_within(made).count == 0
    assert leaks.looked_for([version.pk, leaky.pk])[version.pk]["near"] == 1


def test_a_derivation_says_what_would_still_leak_and_pages_warn(leaky, api, as_researcher, team):
    base = f"/datasets/{leaky.dataset_id}/versions/{leaky.number}"
    kept = api.post(f"{base}/derive/preview", {"filters": {"q": "Q0"}}).json()
    assert (kept["kept"], kept["leaked"]) == (2, 1)
    assert "1 prompt of the new version" in as_researcher.get(f"{base}/derive?q=Q0").content.decode()
    assert "2 prompts or groups" in as_researcher.get(base).content.decode()
    answer = api.get(f"{base}/leaks").json()
    assert [leak["prompts"] for leak in answer["items"]] == [2] and answer["searched"] == {}
    assert api.get(f"{base}/leaks", along=10**6).status_code == 404
    assert ApiClient(team.outsider).get(f"{base}/leaks").status_code == 404
    looked = as_researcher.post(f"{base}/curate/start", {"kind": "leaks", "remove": "train", "threshold": "0.8"})
    runner.run(CurationJob.objects.get().pk)
    assert "2 examples for training ask the same" in as_researcher.get(looked.url).content.decode()


def test_another_version_can_be_compared_along(import_rows, team, as_researcher):
    benchmark = import_rows([pair(f"Q{i}", 1, split="test") for i in range(5)], name="benchmark").version
    mine = import_rows([pair(f"q{i}", 2, split="train") for i in range(3, 9)], name="mine").version
    assert finished(curating.curate(team.researcher, mine, "leaks", {})).result["exact"] == 0
    job = finished(curating.curate(team.researcher, mine, "leaks", {"versions": [benchmark.pk]}))
    assert (job.result["exact"], job.result["along"]) == (2, 1)
    page = as_researcher.get(f"/curations/{job.pk}").content.decode()
    assert "benchmark v1" in page and "the same words" in page
    refused = finished(curating.curate(team.researcher, mine, "leaks", {"versions": [10**9]}))
    assert refused.state == CurationJob.State.FAILED and "no version with the id" in refused.error
    for params in ({"remove": "both"}, {"threshold": 2}, {"versions": ["x"]}, {"versions": list(range(1, 30))}):
        with pytest.raises(Invalid):
            curating.curate(team.researcher, mine, "leaks", params)


def test_a_benchmark_is_held_out_whole_unless_somebody_says_otherwise(import_rows):
    texts = ["Blue", "It is blue", "**Blue**"]
    rows = [{"id": i, "prompt": f"Q{i}", "chosen": texts, "rejected": texts[::-1], "domain": "chat"} for i in range(20)]
    job = import_rows(rows)
    assert (job.format, job.version.counts["heldout"], job.version.counts["train"]) == ("rm_bench", 20, 0)
    other = import_rows(rows, name="other", heldout_share=0.0)
    assert other.version.counts["train"] == 20 and job.version.facets["domain"] == {"chat": 20}

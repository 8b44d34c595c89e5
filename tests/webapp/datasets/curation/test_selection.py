"""Selections show which examples would be removed. Examples without the number stay, and a version is made of the rest."""

from base64 import b64encode

import numpy as np
import pytest

from tests.team import browser
from trainer.contracts import Example
from webapp.core.problems import Invalid
from webapp.datasets import queries
from webapp.datasets.columns.filters import parse
from webapp.datasets.curation import runner
from webapp.datasets.curation import services as curating
from webapp.datasets.models import CurationJob, Dataset, DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.weights.models import WeightsJob, WeightsResult


def record(key, length=None, domain="") -> Example:
    responses = [{"id": "a", "text": "x" * length}] if length is not None else []
    prompt = [{"role": "user", "content": f"Question {key}"}]
    return Example.model_validate({"key": key, "prompt": prompt, "responses": responses, "domain": domain})


@pytest.fixture
def make(team):
    def _make(records, name="Pool") -> DatasetVersion:
        dataset = Dataset.objects.create(workspace=team.workspace, name=name)
        return datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})

    return _make


@pytest.fixture
def look(team):
    def _look(version, kind, **params) -> CurationJob:
        job = curating.curate(team.researcher, version, kind, params)
        runner.run(job.pk)
        job.refresh_from_db()
        return job

    return _look


def gone(job) -> str:
    found = job.findings.order_by("position").values_list("position", flat=True)
    keys = {member.position: member.example.key for member in job.version.members.select_related("example")}
    return "".join(keys[position] for position in found)


def job_of(team, version, kind, contents, **params) -> WeightsJob:
    fields = {"kind": kind, "title": f"{kind} of it", "params": params, "version": version, "state": "finished"}
    job = WeightsJob.objects.create(workspace=team.workspace, key=f"{kind} {WeightsJob.objects.count()}", **fields)
    rows = [WeightsResult(job=job, place=place, content=content) for place, content in enumerate(contents)]
    WeightsResult.objects.bulk_create(rows)
    return job


def log_probs(team, version, **each) -> WeightsJob:
    contents = [{"key": key, "log_probs": {"a": {"each": values}}, "problems": {}} for key, values in each.items()]
    return job_of(team, version, "logprobs", contents, per_token=True)


def embeddings(team, version, **vectors) -> WeightsJob:
    def text(vector):
        return b64encode(np.array(vector, "<f2").tobytes()).decode()

    contents = [{"key": key, "vectors": {"": text(vector)}} for key, vector in vectors.items()]
    return job_of(team, version, "embed", contents, texts="prompts")


def test_the_shortest_half_would_go_and_what_has_no_response_stays(make, look, team):
    version = make([record("a", 30), record("b", 10), record("c", 20), record("d", 20), record("e")])
    job = look(version, "shortest")
    assert job.state == "finished" and gone(job) == "bc"  # the first of two equally long ones
    assert job.result == {"known": 4, "without": 1, "removed": 2, "shortest_kept": 20}
    made = curating.derive(team.researcher, version, parse({}), job=job)
    runner.run(made.pk)
    made.refresh_from_db()
    assert [member.example.key for member in queries.examples(made.made, parse({})).items] == ["a", "d", "e"]


def test_domains_are_cut_to_the_smallest_the_same_way_whatever_else_there_is(make, look):
    many = [record(f"{letter}", domain="maths") for letter in "abcdef"]
    small = [record("x", domain="law"), record("y", domain="law"), record("z")]
    job = look(make([*many, *small]), "balance", seed=3)
    assert job.result == {"known": 8, "without": 1, "removed": 4, "domains": 2, "most": 2}
    assert len(gone(job)) == 4 and set(gone(job)) < set("abcdef")
    others = look(
        make([*many, *small, record("w", domain="art"), record("v", domain="art")], "More"), "balance", seed=3
    )
    assert gone(others) == gone(job)
    drawn = {gone(look(make(many, f"Again {seed}"), "balance", most=3, seed=seed)) for seed in range(6)}
    assert len(drawn) > 1 and {len(each) for each in drawn} == {3}


def test_what_is_easy_even_at_its_hardest_window_would_go(make, look, team):
    version = make([record(key, 5) for key in "abcde"])
    # over two tokens: a 2, b 1 (3 and -1 are never beside each other), c 1.5, d .5; e was not measured
    job = log_probs(team, version, a=[-2, -2, 0], b=[-2, 0, -2], c=[-1, -2], d=[-0.5])
    found = look(version, "hardest", log_probs=job.pk, window=2)
    assert found.state == "finished", found.error
    assert gone(found) == "bd" and found.result["easiest_kept"] == 1.5 and found.result["without"] == 1
    assert gone(look(version, "hardest", log_probs=job.pk, window=1, share=0.25)) == "d"


def test_what_covers_the_rest_stays_the_hard_ones_first(make, look, team):
    version = make([record(key, 5) for key in "abcde"])
    vectors = embeddings(team, version, a=[1, 0], b=[1, 0.1], c=[-1, 0], d=[0, 1])
    alone = look(version, "cover", embeddings=vectors.pk, share=0.5)
    assert alone.state == "finished", alone.error
    assert gone(alone) == "bd"  # a is first, c is opposite; e has no vector and stays
    hard = log_probs(team, version, a=[-1], b=[-1], c=[-1], d=[-3])
    weighed = look(version, "cover", embeddings=vectors.pk, log_probs=hard.pk, share=0.5)
    # d is the hardest; a and c are 1 away from it and b .9: the first of the farthest is taken
    assert gone(weighed) == "bc"
    assert weighed.result == {"known": 4, "without": 1, "removed": 2}


def test_of_two_that_mean_the_same_one_would_go_with_the_one_that_stays(make, look, team):
    version = make([record(key, 5) for key in "abcd"])
    vectors = embeddings(team, version, a=[1, 0], b=[1, 0.05], c=[0, 1])
    job = look(version, "meaning", embeddings=vectors.pk, likeness=0.99)
    assert job.state == "finished", job.error
    assert gone(job) == "b" and job.findings.get().group == 0  # d has no vector and stays
    assert job.result == {"known": 3, "without": 1, "removed": 1, "groups": 1}
    assert gone(look(version, "meaning", embeddings=vectors.pk, likeness=1.0)) == ""


def test_prompts_that_provoke_a_rare_fault_stay(make, look, as_researcher):
    def answered(key, *texts):
        responses = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
        return Example.model_validate(
            {"key": key, "prompt": [{"role": "user", "content": "?"}], "responses": responses}
        )

    fine = [answered(letter, "Rhine", "Nile") for letter in "abcd"]
    version = make([*fine, answered("e", "Rhine", "la " * 40), answered("f", "```open", "```open"), record("g")])
    job = look(version, "faulty", below=0.1)
    assert job.state == "finished", job.error
    assert gone(job) == "abcdf"  # the fault of f is not rare: 2 of 12
    assert job.result["faults"] == {"mixed scripts": 0, "repetition": 1, "broken format": 2}
    assert (job.result["rare"], job.result["without"]) == (["repetition"], 1)
    page = as_researcher.get(f"/datasets/{version.dataset_id}/versions/1/curate").content.decode()
    assert "of 12 responses: mixed scripts 0, repetition 1, broken format 2 (not rare)" in page
    failed = look(version, "faulty", below=0.05)
    assert failed.error.startswith("No fault is in fewer than 5% of the 12 responses")
    page = as_researcher.get(f"/datasets/{version.dataset_id}/versions/1/curate").content.decode()
    assert failed.error in page and "faults below 5%" in page, "said on the card, with what was asked for"
    clean = make(fine, "Clean")
    assert look(clean, "faulty").error.startswith("None of the 8 responses has a fault")


@pytest.mark.parametrize(
    ("kind", "params", "field"),
    [
        ("shortest", {"share": 0}, "params.share"),
        ("shortest", {"share": 1.0}, "params.share"),
        ("shortest", {"share": True}, "params.share"),
        ("balance", {"most": 0}, "params.most"),
        ("balance", {"most": 2.5}, "params.most"),
        ("balance", {"seed": -1}, "params.seed"),
        ("hardest", {}, "params.log_probs"),
        ("hardest", {"log_probs": 1, "window": 0}, "params.window"),
        ("cover", {}, "params.embeddings"),
        ("meaning", {}, "params.embeddings"),
        ("meaning", {"embeddings": 1, "likeness": 0.4}, "params.likeness"),
        ("faulty", {"below": 0}, "params.below"),
        ("cover", {"embeddings": 1, "log_probs": "x"}, "params.log_probs"),
    ],
)
def test_bad_input_is_refused_at_its_field(make, team, kind, params, field):
    with pytest.raises(Invalid) as refused:
        curating.curate(team.researcher, make([record("a", 1)]), kind, params)
    assert set(refused.value.fields) == {field}


def test_a_job_of_other_content_is_refused_in_words(make, look, team):
    version, other = make([record("a", 1), record("b", 2)]), make([record("c", 1)], "Other")
    theirs = log_probs(team, other, c=[-1])
    found = look(version, "hardest", log_probs=theirs.pk)
    assert found.state == "failed" and f"no finished job {theirs.pk}" in found.error
    mine = log_probs(team, version, a=[-1])
    WeightsJob.objects.filter(pk=mine.pk).update(state="running")
    assert look(version, "hardest", log_probs=mine.pk).state == "failed"


def test_the_page_offers_what_is_measured_and_tells_what_would_go(make, team, as_researcher, look):
    version = make([record("a", 1, "maths"), record("b", 20, "maths"), record("c", 3, "law")])
    page = f"/datasets/{version.dataset_id}/versions/1/curate"
    empty = as_researcher.get(page).content.decode()
    assert f"?kind=embed&amp;dataset_version={version.pk}" in empty and "K-center" in empty
    hard = log_probs(team, version, a=[-1], b=[-2], c=[-3])
    assert f"(job {hard.pk})" in as_researcher.get(page).content.decode()
    asked = {"kind": "hardest", "log_probs": hard.pk, "window": 512, "share": 0.5}
    to = as_researcher.post(f"{page}/start", asked).url
    job = CurationJob.objects.latest("id")
    assert to == f"/curations/{job.pk}" and job.params == {"log_probs": hard.pk, "window": 512, "share": 0.5}
    runner.run(job.pk)
    shown = as_researcher.get(to).content.decode()
    assert f"Settings: hard by logprobs of it (job {hard.pk}), in windows of 512 tokens; 50% are removed." in shown
    assert "1 of 3 examples would be removed; the hardest window of those that stay has 2.00 nats or more." in shown
    assert "1 nats" in shown or "1.00 nats" in shown
    look(version, "balance")
    assert "of each of 2 domains at most 1 stay" in as_researcher.get(page).content.decode()
    refused = as_researcher.post(f"{page}/start", {"kind": "balance", "most": "many"}, follow=True).content.decode()
    assert "must be from 1 to" in refused
    assert "Start one" not in browser(team.reviewer).get(page).content.decode()


def test_what_a_look_was_asked_for_stands_beside_what_it_found(make, team, as_researcher, look):
    version = make([record("a", 1), record("b", 2), record("c", 3)])
    vectors = embeddings(team, version, a=[1, 0], b=[0, 1], c=[-1, 0])
    hard = log_probs(team, version, a=[-1], b=[-2], c=[-3])

    def said(kind, **params) -> str:
        return as_researcher.get(f"/curations/{look(version, kind, **params).pk}").content.decode()

    named = f"embed of it (job {vectors.pk})"
    assert f"Settings: {named}; by distance alone; 10% are kept." in said("cover", embeddings=vectors.pk)
    weighed = (
        f"{named}; weighed by what is hard by logprobs of it (job {hard.pk}), in windows of 8 tokens; 50% are kept."
    )
    assert weighed in said("cover", embeddings=vectors.pk, log_probs=hard.pk, window=8, share=0.5)
    assert f"Settings: {named}; from a cosine of 0.9." in said("meaning", embeddings=vectors.pk, likeness=0.9)
    assert "Settings: 25% are removed." in said("shortest", share=0.25)
    assert "Settings: drawn with seed 3." in said("balance", seed=3)
    assert "Settings: prompts, 90% alike." in said("duplicates", scope="prompt", threshold=0.9)
    assert "Settings: " not in said("structure")
    CurationJob.objects.update(params={})
    assert as_researcher.get(f"/curations/{CurationJob.objects.latest('id').pk}").status_code == 200

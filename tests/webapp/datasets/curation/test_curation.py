"""Curation searches without a change, shows what would be removed, and makes the next version of the rest."""

import re
from dataclasses import replace

import numpy as np
import pytest
from django.db import OperationalError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pages import page_html
from tests.webapp.webhooks.hooks import announced_events, listen
from trainer.contracts import Example
from webapp.core.background import jobs
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.datasets import curation, queries
from webapp.datasets.columns.filters import parse
from webapp.datasets.curation import duplicates, runner
from webapp.datasets.curation import services as curating
from webapp.datasets.exploration import bias_report
from webapp.datasets.index import tokenizer
from webapp.datasets.models import CurationJob, Dataset, DatasetVersion
from webapp.datasets.versions import services as datasets

LONG = "The quick brown fox jumps over the lazy dog while the cat sleeps on the warm stone wall near the old mill"


def example(key, text="Why?", **extra):
    return Example.model_validate({"key": key, "prompt": [{"role": "user", "content": text}], **extra})


@pytest.fixture
def make(team):
    def _make(records, name="Questions") -> DatasetVersion:
        dataset = Dataset.objects.create(workspace=team.workspace, name=name, heldout_share=0.5)
        return datasets.new_version(team.researcher, dataset, records, None, {"from": "run"})

    return _make


def done(job) -> CurationJob:
    runner.run(job.pk)
    return CurationJob.objects.select_related("made").get(pk=job.pk)


def keys(version):
    return [each.example.key for each in version.members.select_related("example").order_by("position")]


def test_a_derived_version_keeps_order_sides_and_examples(make, team):
    version = make(example(f"e{i}", domain="odd" if i % 2 else "even") for i in range(8))
    listen(team.owner)
    job = curating.derive(team.researcher, version, parse({"domain": "odd"}), note="odd ones")
    assert job.version.dataset.versions.count() == 1  # queued, but not done
    made = done(job).made
    heard = [(event, facts["curation"], facts["kind"]) for event, facts in announced_events()]
    assert heard == [(f"curation.{word}", job.pk, "derive") for word in ("started", "finished")]
    assert (made.number, keys(made)) == (2, ["e1", "e3", "e5", "e7"])
    assert made.lineage["filters"] == {"domain": "odd"} and made.lineage["removed"] == 4 and made.lineage["base"] == 1
    sides = dict(version.members.values_list("example__key", "example__split"))
    assert all(sides[key] == side for key, side in made.members.values_list("example__key", "example__split"))
    assert AuditEntry.objects.filter(action="version.made", object_id=made.pk).exists()
    assert queries.examples(made, parse({"domain": "odd"})).items[0].position == 0


def test_a_version_whose_worker_died_right_behind_it_is_told_as_made(make, team, monkeypatch):
    version = make(example(f"e{i}", domain="odd" if i % 2 else "even") for i in range(8))
    job = curating.derive(team.researcher, version, parse({"domain": "odd"}))

    def gone(*given):
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as patch, pytest.raises(OperationalError):
        patch.setattr(curation.runner, "_over", gone)
        runner.run(job.pk)
    found = done(job)
    assert found.result["unchanged"] is False and found.made.number == 2
    assert AuditEntry.objects.filter(action="version.made", object_id=found.made.pk).count() == 1


def test_what_matches_can_be_removed_instead(make, team):
    version = make(example(f"e{i}", domain="odd" if i % 2 else "even") for i in range(4))
    job = done(curating.derive(team.researcher, version, parse({"domain": "odd"}), keep=False))
    assert keys(job.made) == ["e0", "e2"] and job.result == {"removed": 2, "kept": 2, "unchanged": False, "leaked": 0}


@pytest.mark.parametrize(
    ("given", "keep", "words"),
    [({"domain": "law"}, True, "Nothing would be left"), ({"domain": "law"}, False, "Nothing would be removed")],
)
def test_a_version_that_would_be_empty_or_the_same_is_not_made(make, team, given, keep, words):
    job = done(curating.derive(team.researcher, make([example("a")]), parse(given), keep=keep))
    assert job.state == "failed" and words in job.error and DatasetVersion.objects.count() == 1


def test_deriving_needs_a_filter_or_a_finished_job(make, team):
    version = make([example("a"), example("b")])
    with pytest.raises(Invalid):
        curating.derive(team.researcher, version, parse({}))
    waiting = curating.curate(team.researcher, version, "duplicates", {})
    with pytest.raises(Conflict):
        curating.derive(team.researcher, version, parse({}), job=waiting)


def test_the_preview_names_what_would_go(make, team):
    version = make(example(f"e{i}", domain="odd" if i % 2 else "even") for i in range(50))
    found = queries.removal(version, parse({"domain": "odd"}), True, None)
    assert (found.kept, found.removed, len(found.examples)) == (25, 25, 20)
    assert [each.example.key for each in found.examples[:2]] == ["e0", "e2"]


def test_duplicates_are_found_and_the_first_of_each_stays(make, team):
    records = [
        example("a", LONG),
        example("b", "Something else entirely, about the sea and its many ships and sailors"),
        example("c", LONG.upper() + "!!"),
        example("d", LONG + " today"),
        example("e", "为什么天空是蓝色的？请用三句话解释其中的物理原理。"),
        example("f", "为什么天空是蓝色的？请用三句话解释其中的物理原理！"),
    ]
    version = make(records)
    job = done(curating.curate(team.researcher, version, "duplicates", {"threshold": 0.7}))
    found = {each.position: (each.group, each.detail["similarity"]) for each in job.findings.all()}
    assert found[2] == (0, 1.0) and found[5] == (4, 1.0)
    assert found[3][0] == 0 and 0.7 <= found[3][1] < 1
    assert job.result == {"exact": 2, "near": 1, "groups": 2, "examples": 6}
    made = done(curating.derive(team.researcher, version, parse({}), job=job)).made
    assert keys(made) == ["a", "b", "e"] and made.lineage["found"] == "duplicates"


def test_pairs_with_one_prompt_are_duplicates_only_by_the_prompt(make, team):
    version = make(
        example(f"e{i}", LONG, responses=[{"id": "a", "text": " ".join(f"{word}{n}" for n in range(60))}])
        for i, word in enumerate(("red", "blue"))
    )
    assert done(curating.curate(team.researcher, version, "duplicates", {})).result["near"] == 0
    by_prompt = done(curating.curate(team.researcher, version, "duplicates", {"scope": "prompt"}))
    assert by_prompt.result["exact"] == 1


@pytest.mark.parametrize(
    ("params", "field"), [({"threshold": 2}, "params.threshold"), ({"scope": "half"}, "params.scope")]
)
def test_wrong_wishes_are_refused_at_their_field(make, team, params, field):
    with pytest.raises(Invalid) as problem:
        curating.curate(team.researcher, make([example("a")]), "duplicates", params)
    assert list(problem.value.fields) == [field]


vocabulary = st.sampled_from([f"w{i}" for i in range(40)])


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.lists(vocabulary, min_size=1, max_size=12), min_size=1, max_size=25),
    copies=st.lists(st.integers(0, 24), max_size=5),
)
def test_exact_duplicates_are_never_missed_and_what_goes_is_like_one_that_stays(texts, copies):
    tokens = texts + [texts[at % len(texts)] for at in copies]
    signatures = np.stack([duplicates.signature(each) for each in tokens])
    contents = np.array([duplicates._content(each) for each in tokens], np.uint64)
    gone = {
        position: (group, similarity) for position, group, similarity in duplicates.pairs(signatures, contents, 0.8)
    }
    stays = [at for at in range(len(tokens)) if at not in gone]
    assert len({tuple(tokens[at]) for at in stays}) == len(stays)
    for position, (group, similarity) in gone.items():
        assert group < position and group not in gone and similarity >= 0.8
        assert (similarity == 1.0) == (tokens[position] == tokens[group])


def test_the_estimate_is_near_the_true_likeness():
    one = [f"w{i}" for i in range(200)]
    other = one[:150] + [f"v{i}" for i in range(50)]
    shingles = [{tuple(each[i : i + 3]) for i in range(198)} for each in (one, other)]
    true = len(shingles[0] & shingles[1]) / len(shingles[0] | shingles[1])
    estimate = (duplicates.signature(one) == duplicates.signature(other)).mean()
    assert abs(estimate - true) < 0.2


def test_tokens_keep_their_order_and_cut_scripts_without_spaces():
    assert tokenizer.tokens("The SKY, 天空蓝") == ["the", "sky", "天空", "空蓝"]


def rubric(*criteria):
    return {"criteria": [{"id": f"c{i}", "points": 1, **each} for i, each in enumerate(criteria)]}


SHORT = {"name": "word_count", "args": {"max": 3}}
GRADED = {
    "verdicts": [{"response": "a", "rater": "checker", "verdicts": [{"criterion_id": "c0", "met": True}]}],
    "annotation": {
        "project-3": [
            {"subject": {"response": "a"}, "grades": {"c0": "met", "c1": "met"}},
            {"subject": {"response": "b"}, "grades": {"c0": "met", "c1": "not_met"}},
            {"subject": {"response": "b"}, "grades": {"c0": "cannot_assess"}},
        ]
    },
}
ANSWERS = [{"id": "a", "text": "two words"}, {"id": "b", "text": "rather more than three words"}]


def test_criteria_that_tell_no_two_answers_apart_are_named(make, team):
    decides, idle = (
        {"text": "At most 3 words", "verifier": SHORT},
        {"text": "At most 90", "verifier": {"name": "word_count", "args": {"max": 90}}},
    )
    version = make(
        [
            example("a", rubric=rubric(decides, idle, {"text": "Kind"}), responses=ANSWERS),
            example("b", rubric=rubric(idle), responses=ANSWERS),
            example("c", rubric=rubric(idle), responses=ANSWERS[:1]),
            example(
                "d",
                rubric=rubric({"text": "Kind"}, {"text": "True"}),
                responses=ANSWERS,
                meta=GRADED,
            ),
        ]
    )
    job = done(curating.curate(team.researcher, version, "criteria", {}))
    assert job.result == {"judged": 5, "idle": 3, "without_verdicts": 2, "rubrics_all_idle": 1}
    found = {
        each.position: (each.removes, [one["id"] for one in each.detail["criteria"]]) for each in job.findings.all()
    }
    assert found == {0: (False, ["c1"]), 1: (True, ["c0"]), 3: (False, ["c0"])}


def test_rubrics_are_checked_by_their_words(make, team):
    version = make(
        [
            example("a", rubric=rubric({"text": "Names Paris"}, {"text": "Uses at most 40 words"})),
            example("b", rubric=rubric({"text": "Is good and appropriate"})),
        ]
    )
    job = done(curating.curate(team.researcher, version, "structure", {"removes": ["too_few"]}))
    assert (job.result["rubrics"], job.result["flagged"]) == (2, 1) and job.result["codes"]["too_few"] == 1
    assert [(each.position, each.removes) for each in job.findings.all()] == [(1, True)]
    with pytest.raises(Invalid):
        curating.curate(team.researcher, version, "structure", {"removes": ["ugly"]})


def test_what_a_check_of_rubrics_offers_says_only_that_it_would_go(make, team, as_researcher):
    version = make([example("a", rubric=rubric({"text": "Names Paris"}))])
    job = done(curating.curate(team.researcher, version, "structure", {"removes": ["too_few"]}))
    page = page_html(as_researcher.get(f"/curations/{job.pk}"))
    assert "would be removed" in page and "nothing else in its rubric" not in page


def test_the_surface_is_counted_against_the_judged_pairs(make):
    def pair(key, a, b, strength):
        responses = [{"id": "a", "text": a}, {"id": "b", "text": b}]
        return example(key, responses=responses, preferences=[{"a": "a", "b": "b", "strength": strength}])

    version = make(
        [
            pair("a", "x" * 30, "y" * 10, 2),
            pair("b", "x" * 30, "y" * 10, -2),
            pair("c", "x" * 30, "y" * 29, -1),
            pair("d", "x", "y", 0),
        ]
    )
    told = bias_report.report(version)
    shares = {each.name: each.count for each in told.slices}
    assert (told.judged, told.unequal, shares["rejected:longer"], shares["chosen:longer"]) == (3, 3, 1, 1)
    assert told.longer_wins == pytest.approx(2 / 3)
    assert bias_report.report(make([example("a")], "Bare")).longer_wins is None


def test_a_job_whose_worker_died_is_taken_up_again_and_never_run_twice(make, team, django_capture_on_commit_callbacks):
    version = make(example(f"e{i}", LONG) for i in range(3))
    job = curating.curate(team.researcher, version, "duplicates", {})
    CurationJob.objects.update(state="running", seen_at="2026-01-01T00:00:00Z")
    assert jobs.take_up_lost() == 1 and jobs.take_up_lost() == 0
    assert done(job).findings.count() == 2
    runner.run(job.pk)  # the job has ended: nothing happens
    assert job.findings.count() == 2


def test_a_mistake_of_ours_ends_a_job_and_a_database_that_is_away_does_not(make, team, monkeypatch):
    version = make([example("e1"), example("e2")])
    job = curating.curate(team.researcher, version, "structure", {})

    def breaks(error):
        def run(job, report):
            raise error

        monkeypatch.setitem(curation.REGISTRY, "structure", replace(curation.REGISTRY["structure"], run=run))

    breaks(OperationalError("the connection is lost"))
    with pytest.raises(OperationalError):
        runner.run(job.pk)
    job.refresh_from_db()
    assert job.state == CurationJob.State.RUNNING
    breaks(KeyError("points"))
    runner.run(job.pk)
    job.refresh_from_db()
    assert job.state == CurationJob.State.FAILED and "happened on the server" in job.error and job.finished_at


def test_the_api_looks_previews_and_derives(make, api, eager, django_capture_on_commit_callbacks):
    version = make([example("a", LONG), example("b", LONG), example("c")])
    base = f"/datasets/{version.dataset_id}/versions/1"
    with django_capture_on_commit_callbacks(execute=True):
        looked = api.post(f"{base}/curate", {"kind": "duplicates"})
    assert looked.status_code == 202
    job = api.get(f"/curations/{looked.json()['id']}").json()
    assert (job["state"], job["result"]["exact"]) == ("finished", 1)
    assert api.get(f"/curations/{job['id']}/findings").json()["items"][0]["position"] == 1
    preview = api.post(f"{base}/derive/preview", {"job": job["id"]}).json()
    assert (preview["removed"], preview["examples"][0]["key"]) == (1, "b")
    with django_capture_on_commit_callbacks(execute=True):
        started = api.post(f"{base}/derive", {"job": job["id"], "note": "no twins"}).json()
    made = api.get(f"/curations/{started['id']}").json()["version"]
    assert (
        made["number"] == 2 and api.get(f"/datasets/{version.dataset_id}").json()["latest"]["counts"]["examples"] == 2
    )
    assert api.post(f"{base}/derive", {}).status_code == 422
    assert api.post(f"/datasets/{version.dataset_id}/versions/2/derive", {"job": job["id"]}).status_code == 404


def test_the_pages_look_and_show(make, as_researcher, eager, django_capture_on_commit_callbacks):
    version = make([example("a", LONG), example("b", LONG)])
    base = f"/datasets/{version.dataset_id}/versions/1"
    with django_capture_on_commit_callbacks(execute=True):
        url = as_researcher.post(f"{base}/curate/start", {"kind": "duplicates", "scope": "all", "threshold": "0.8"}).url
    page = page_html(as_researcher.get(url))
    assert "1 exact and 0 near" in page and "the same words" in page and "Remove 1 example" in page
    assert "1 exact and 0 near" in page_html(as_researcher.get(f"{base}/curate"))
    preview = page_html(as_researcher.get(f"{base}/derive", {"job": url.rpartition("/")[2]}))
    assert (
        "Examples that would be removed" in preview
        and "by “Find duplicates”" in preview
        and "Length ratio" not in preview
    )
    assert re.search(r'aria-current="page">Curate<', preview)
    with django_capture_on_commit_callbacks(execute=True):
        derived = as_researcher.post(f"{base}/derive?job={url.rpartition('/')[2]}", {"note": ""}).url
    assert "Open version 2" in page_html(as_researcher.get(derived))
    assert as_researcher.post(f"{base}/curate/start", {"kind": "magic"}).url == f"{base}/curate"


def test_a_wrong_number_is_told_at_its_field_and_what_was_typed_stays(make, as_researcher):
    version = make([example("a", LONG), example("b", LONG)])
    base = f"/datasets/{version.dataset_id}/versions/1"
    answer = as_researcher.post(f"{base}/curate/start", {"kind": "balance", "most": "none", "seed": "7"})
    page = page_html(answer)
    assert answer.status_code == 422 and not CurationJob.objects.exists()
    assert re.search(
        r'name="most"[^>]* value="none"[^>]* aria-invalid="true" aria-describedby="f-balance-most-error"', page
    )
    assert re.search(r'id="f-balance-most-error">.*?At most: must be from 1 to 1,000,000\. ?</p>', page)
    assert re.search(r'name="seed"[^>]* value="7" ?>', page) and page.count('aria-invalid="true"') == 1
    answer = as_researcher.post(f"{base}/curate/start", {"kind": "leaks", "remove": "heldout", "threshold": "2"})
    assert "Least similarity: must be a number from 0.5 to 1." in page_html(answer)
    assert '<option value="heldout" selected>' in page_html(answer)

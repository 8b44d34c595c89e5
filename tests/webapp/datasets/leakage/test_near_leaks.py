"""Held-out prompts that are nearly the same as a training prompt. A worker searches for them, and the result is stored and shown
everywhere.
"""

import tracemalloc

import pytest

from tests.pages import page_html
from trainer.contracts import Example as Record
from webapp.datasets.columns.filters import parse
from webapp.datasets.curation import near_leak_search, runner
from webapp.datasets.curation import services as curating
from webapp.datasets.leakage import near_leaks
from webapp.datasets.leakage.near_leaks import VersionPair, near_leaks_of
from webapp.datasets.models import CurationJob, LeakSearch
from webapp.datasets.versions import services as datasets

LONG = "the quick brown fox jumps over the lazy dog while the cat sleeps on the warm wall near the old mill number"


def text(n):
    """Prompts for different n share only shingles of one word."""
    return " ".join(f"{word}{n}" for word in LONG.split())


def record(key, prompt, split):
    return Record(key=key, split=split, prompt=[{"role": "user", "content": prompt}])


@pytest.fixture
def version_of_pairs(team):
    """A version of these (prompt, side) pairs."""

    def make(*rows, name="near"):
        dataset = datasets.create_dataset(team.researcher, name)
        records = [record(f"k{n}", prompt, side) for n, (prompt, side) in enumerate(rows)]
        return datasets.new_version(team.researcher, dataset, records, None, {"from": "import"})

    return make


@pytest.fixture
def asked(monkeypatch):
    """The searches that workers were asked to make."""
    found = []
    monkeypatch.setattr(near_leaks, "enqueue", lambda name, *args: found.append(args))
    return found


def test_what_is_nearly_the_same_is_found_and_what_is_the_same_is_left_to_the_other_search(version_of_pairs):
    rows = [(text(n), "train") for n in range(6)]
    rows += [(f"{text(1)} please", "heldout"), (f"so {text(4)}", "heldout"), (text(9), "heldout")]
    version = version_of_pairs(*rows, (text(2).upper(), "train"), (f"So  {text(4)}", "heldout"))
    found = near_leak_search.search(version, version)
    assert (found["prompts"], found["examples"]) == (2, 3), "k7 and k10 ask the same"
    assert [(each["key"], each["trained"]["key"]) for each in found["shown"]] == [("k6", "k1"), ("k7", "k4")]
    assert all(0.8 <= each["similarity"] <= 1 for each in found["shown"])
    exact = version_of_pairs((text(1), "train"), (text(2), "train"), name="exact")
    held = version_of_pairs((text(1), "heldout"), (f"{text(2)} please", "heldout"), name="held")
    assert near_leak_search.search(exact, held)["prompts"] == 1
    trains = version_of_pairs((f"{text(2)} please", "train"), (text(7), None), name="trains")
    assert (
        near_leak_search.search(exact, trains)["prompts"] == 0
        and near_leak_search.search(exact, trains, "")["prompts"] == 1
    )
    assert (
        near_leak_search.search(trains, version_of_pairs((f"{text(7)} now", "heldout"), name="unsided"))["prompts"] == 1
    )


def test_blocks_change_nothing_but_memory(version_of_pairs, monkeypatch):
    rows = [(text(n), "train") for n in range(60)] + [(f"{text(n)} please", "heldout") for n in range(40, 100)]
    version = version_of_pairs(*rows)
    whole = near_leak_search.search(version, version)
    assert whole["prompts"] == 20

    def peak():
        tracemalloc.start()
        found = near_leak_search.search(version, version)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found, size

    _, large = peak()
    monkeypatch.setattr(near_leak_search, "BLOCK", 16)
    monkeypatch.setattr(near_leak_search, "ROWS", 7)
    found, small = peak()
    assert found == whole and small < large


def test_pages_and_api_say_that_nobody_knows_yet_then_what_was_found(team, version_of_pairs, asked, as_researcher, api):
    version = version_of_pairs((text(1), "train"), (f"{text(1)} please", "heldout"), (text(2), "heldout"))
    assert asked == [(version.pk, version.pk, "heldout")], "asked for when the version was made"
    page = f"/datasets/{version.dataset_id}/versions/{version.number}"
    assert "not known yet" in page_html(as_researcher.get(page))
    [told] = api.get(f"{page}/leaks").json()["near"]
    assert (told["known"], told["prompts"], told["examples"]) == (False, None, None)
    assert len(asked) == 1, "a worker was asked just now"
    near_leak_search.look(*asked[0])
    seen = page_html(as_researcher.get(page))
    assert "1 held-out prompt of near v1 is nearly the same as one that is trained on." in seen
    assert "is nearly the same" in page_html(as_researcher.get(f"{page}/derive?q=quick1"))
    [told] = api.get(f"{page}/leaks").json()["near"]
    assert (told["known"], told["prompts"], told["shown"][0]["trained"]["key"]) == (True, 1, "k0")
    near_leak_search.look(*asked[0])
    assert LeakSearch.objects.count() == 1


def test_a_derived_version_is_searched_and_its_job_tells(team, version_of_pairs, asked, as_researcher):
    version = version_of_pairs((text(1), "train"), (f"{text(1)} please", "heldout"), (text(2), "heldout"))
    job = curating.derive(team.researcher, version, parse({"q": "quick2"}), keep=False)
    runner.run(job.pk)
    derived = CurationJob.objects.get(pk=job.pk).made
    assert asked[-1] == (derived.pk, derived.pk, "heldout")
    assert "not known yet" in page_html(as_researcher.get(f"/curations/{job.pk}"))
    near_leak_search.look(*asked[-1])
    assert "is nearly the same" in page_html(as_researcher.get(f"/curations/{job.pk}"))


def test_an_import_tells_once_it_is_known(import_rows, asked, as_researcher):
    rows = [{"prompt": text(n), "chosen": "a", "rejected": "b", "split": "train"} for n in range(3)]
    job = import_rows([*rows, {**rows[0], "prompt": f"{text(0)} please", "split": "test"}])
    assert asked == [(job.version.pk, job.version.pk, "heldout")]
    assert "not known yet" in page_html(as_researcher.get(f"/imports/{job.pk}"))
    near_leak_search.look(*asked[0])
    assert "nearly the same as one that is trained on" in page_html(as_researcher.get(f"/imports/{job.pk}"))


def test_nothing_is_asked_where_one_side_is_empty_and_what_is_gone_is_nobodys(version_of_pairs, asked, team):
    version = version_of_pairs((text(1), "train"), (text(2), "train"))
    assert near_leaks_of([VersionPair(version, version)]) == [] == asked
    both = version_of_pairs((text(1), "train"), (f"{text(1)} please", "heldout"), name="both")
    both.dataset.delete()
    near_leak_search.look(*asked[0])
    assert not LeakSearch.objects.exists()


def test_one_query_tells_of_any_number_of_pairs(version_of_pairs, asked, django_assert_num_queries):
    first = version_of_pairs((text(1), "train"), (f"{text(1)} please", "heldout"))
    others = [version_of_pairs((f"{text(1)} {n}", "heldout"), name=f"other {n}") for n in range(3)]
    near_leak_search.look(first.pk, others[1].pk, "heldout")
    with django_assert_num_queries(1):
        found = near_leaks_of([VersionPair(first, other) for other in others])
    assert [each.known for each in found] == [False, True, False] and found[1].prompts == 1

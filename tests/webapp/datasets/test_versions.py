"""Versions: what they hold, what they share, and that nothing about an example changes behind anybody's back."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainer.contracts import Example
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets import queries, services
from webapp.datasets.digests import version_digest
from webapp.datasets.models import Dataset
from webapp.datasets.models import Example as ExampleRow

IMPORTED = {"from": "import"}


def example(key, text="Why?", **extra):
    return Example.model_validate({"key": key, "prompt": [{"role": "user", "content": text}], **extra})


@pytest.fixture
def dataset(cast):
    return Dataset.objects.create(workspace=cast.workspace, name="Questions", heldout_share=0.3)


def held(version):
    return [ExampleRow(canonical=line).record for _, line in queries.stream_canonical(version)]


def keys(version):
    return [each.key for each in held(version)]


def test_a_version_holds_the_records_in_their_order(cast, dataset):
    version = services.new_version(cast.researcher, dataset, map(example, "cab"), None, {"from": "run", "run": 4})
    assert (version.number, keys(version)) == (1, ["c", "a", "b"])
    assert version.lineage == {"from": "run", "run": 4}
    assert version.counts["examples"] == 3
    assert version.digest == version_digest(each.digest() for each in held(version))
    entry = AuditEntry.objects.get(action="version.made")
    assert (entry.actor, entry.detail["from"]) == (cast.researcher.user, "run")


def test_records_stand_in_for_their_keys_and_new_ones_follow(cast, dataset):
    first = services.new_version(cast.researcher, dataset, map(example, "abc"), None, IMPORTED)
    changed = [example("z"), example("b", "Why not?")]
    second = services.new_version(cast.researcher, dataset, changed, first, {"from": "annotation", "project": 2})
    assert keys(second) == ["a", "b", "c", "z"]
    assert held(second)[1].prompt[0].content == "Why not?"
    assert second.lineage == {"from": "annotation", "project": 2, "base": 1, "base_id": first.pk}
    assert ExampleRow.objects.filter(dataset=dataset).count() == 5  # what stayed is shared
    assert keys(first) == ["a", "b", "c"]


def test_the_same_content_makes_no_second_version_and_leaves_no_rows(cast, dataset):
    first = services.new_version(cast.researcher, dataset, map(example, "abc"), None, IMPORTED)
    again = services.new_version(cast.researcher, dataset, map(example, "bca"), None, IMPORTED)
    assert again == first
    assert AuditEntry.objects.filter(action="version.made").count() == 1


@pytest.mark.parametrize(
    ("records", "field"),
    [
        ([example("a"), example("a", "Again?")], "records.1.key"),
        ([example("known", split="heldout")], "records.0.split"),
        ([example("a", meta={"loss": 1e999})], "records.0"),
    ],
)
def test_records_that_cannot_be_stored_are_named_and_nothing_is_made(cast, dataset, records, field):
    services.new_version(cast.researcher, dataset, [example("known", split="train")], None, IMPORTED)
    with pytest.raises(Invalid) as problem:
        services.new_version(cast.researcher, dataset, records, None, IMPORTED)
    assert list(problem.value.fields) == [field]
    assert dataset.versions.count() == 1


def test_a_base_of_another_dataset_is_refused(cast, dataset):
    other = Dataset.objects.create(workspace=cast.workspace, name="Other")
    foreign = services.new_version(cast.researcher, other, [example("a")], None, IMPORTED)
    with pytest.raises(Invalid) as problem:
        services.new_version(cast.researcher, dataset, [], foreign, IMPORTED)
    assert list(problem.value.fields) == ["base"]


grown = st.lists(st.sets(st.text("abcdefgh", min_size=1, max_size=2), min_size=1, max_size=12), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=grown, share=st.sampled_from([0.0, 0.2, 0.5, 0.9]))
def test_an_example_never_changes_side_however_the_dataset_grows(cast, batches, share):
    dataset = Dataset.objects.create(workspace=cast.workspace, name="Growing", heldout_share=share)
    sides, base = {}, None
    try:
        for turn, batch in enumerate(batches):
            records = [example(key, f"Question {turn}") for key in sorted(batch)]
            base = services.new_version(cast.researcher, dataset, records, base, IMPORTED)
            now = {each.key: each.split for each in held(base)}
            assert all(now[key] == side for key, side in sides.items())
            assert all(side in ("train", "heldout") for side in now.values())
            sides |= now
            assert set(now) == set().union(*batches[: turn + 1])
    finally:
        dataset.delete()


@pytest.mark.django_db(transaction=True)
def test_writers_at_the_same_time_get_numbers_of_their_own(cast, dataset):
    def write(name):
        try:
            return services.new_version(cast.researcher, dataset, [example(name)], None, IMPORTED).number
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(write, "abcd")) == [1, 2, 3, 4]

"""Versions: their contents and the rows that they share. An example does not change."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.concurrency import concurrently, outcome, somebody_waits
from tests.team import ApiClient
from trainer.contracts import Example
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.core.text.json_diff import differing
from webapp.datasets import queries
from webapp.datasets.formats import patches
from webapp.datasets.models import Dataset, DatasetVersion, VersionMember
from webapp.datasets.models import Example as ExampleRow
from webapp.datasets.versions import differences, lineage, planner, services
from webapp.datasets.versions.digests import version_digest

from ..conftest import known_rows, make_seem_empty, row

IMPORTED = {"from": "import"}


def example(key, text="Why?", **extra):
    return Example.model_validate({"key": key, "prompt": [{"role": "user", "content": text}], **extra})


@pytest.fixture
def dataset(team):
    return Dataset.objects.create(workspace=team.workspace, name="Questions", heldout_share=0.3)


def held(version):
    return [ExampleRow(canonical=line).record for _, line in queries.stream_canonical(version)]


def keys(version):
    return [each.key for each in held(version)]


def test_a_version_holds_the_records_in_their_order(team, dataset):
    version = services.new_version(team.researcher, dataset, map(example, "cab"), None, {"from": "run", "run": 4})
    assert (version.number, keys(version)) == (1, ["c", "a", "b"])
    assert version.lineage == {"from": "run", "run": 4}
    assert version.counts["examples"] == 3
    assert version.digest == version_digest(each.digest() for each in held(version))
    entry = AuditEntry.objects.get(action="version.made")
    assert (entry.actor, entry.detail["from"]) == (team.researcher.user, "run")


def test_records_stand_in_for_their_keys_and_new_ones_follow(team, dataset):
    first = services.new_version(team.researcher, dataset, map(example, "abc"), None, IMPORTED)
    changed = [example("z"), example("b", "Why not?")]
    second = services.new_version(team.researcher, dataset, changed, first, {"from": "annotation", "project": 2})
    assert keys(second) == ["a", "b", "c", "z"]
    assert held(second)[1].prompt[0].content == "Why not?"
    assert second.lineage == {"from": "annotation", "project": 2, "base": 1, "base_id": first.pk}
    assert ExampleRow.objects.filter(dataset=dataset).count() == 5  # the unchanged examples are shared
    assert keys(first) == ["a", "b", "c"]


def test_the_same_content_makes_no_second_version_and_leaves_no_rows(team, dataset):
    first = services.new_version(team.researcher, dataset, map(example, "abc"), None, IMPORTED)
    again = services.new_version(team.researcher, dataset, map(example, "bca"), None, IMPORTED)
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
def test_records_that_cannot_be_stored_are_named_and_nothing_is_made(team, dataset, records, field):
    services.new_version(team.researcher, dataset, [example("known", split="train")], None, IMPORTED)
    with pytest.raises(Invalid) as problem:
        services.new_version(team.researcher, dataset, records, None, IMPORTED)
    assert list(problem.value.fields) == [field]
    assert dataset.versions.count() == 1


def test_a_base_of_another_dataset_is_refused(team, dataset):
    other = Dataset.objects.create(workspace=team.workspace, name="Other")
    foreign = services.new_version(team.researcher, other, [example("a")], None, IMPORTED)
    with pytest.raises(Invalid) as problem:
        services.new_version(team.researcher, dataset, [], foreign, IMPORTED)
    assert list(problem.value.fields) == ["base"]


grown = st.lists(st.sets(st.text("abcdefgh", min_size=1, max_size=2), min_size=1, max_size=12), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=grown, share=st.sampled_from([0.0, 0.2, 0.5, 0.9]))
def test_an_example_never_changes_side_however_the_dataset_grows(team, batches, share):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Growing", heldout_share=share)
    sides, base = {}, None
    try:
        for turn, batch in enumerate(batches):
            records = [example(key, f"Question {turn} of {key}") for key in sorted(batch)]
            base = services.new_version(team.researcher, dataset, records, base, IMPORTED)
            now = {each.key: each.split for each in held(base)}
            assert all(now[key] == side for key, side in sides.items())
            assert all(side in ("train", "heldout") for side in now.values())
            sides |= now
            assert set(now) == set().union(*batches[: turn + 1])
    finally:
        dataset.delete()


@pytest.mark.django_db(transaction=True)
def test_writers_at_the_same_time_get_numbers_of_their_own(team, dataset):
    def write(name):
        try:
            return services.new_version(team.researcher, dataset, [example(name)], None, IMPORTED).number
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(write, "abcd")) == [1, 2, 3, 4]


def test_what_lies_between_two_versions_is_told_by_key_and_field(team, dataset):
    one = services.new_version(team.researcher, dataset, map(example, "abcd"), None, IMPORTED)
    records = [example("a"), example("b", "Why not?", tags=["new"]), example("e")]
    two = services.new_version(team.researcher, dataset, records, None, IMPORTED)
    assert differences.counts(one, two) == {"added": 1, "removed": 2, "changed": 1, "same": 1}
    [changed] = differences.page(one, two, "changed").items
    told = {change.path: (change.before, change.after) for change in changed.changes}
    assert told == {"prompt.0.content": ("Why?", "Why not?"), "tags": (differences.MISSING, ["new"])}
    first = differences.page(one, two, "removed", limit=1)
    rest = differences.page(one, two, "removed", first.next)
    assert [each.key for each in (*first.items, *rest.items)] == ["c", "d"]


names = st.sets(st.sampled_from("abcdefgh"), min_size=1)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=names, after=names, edited=names)
def test_a_difference_adds_up(team, before, after, edited):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Two")
    try:
        one = services.new_version(team.researcher, dataset, [example(key) for key in before], None, IMPORTED)
        records = [example(key, "Else?" if key in edited else "Why?") for key in after]
        two = services.new_version(team.researcher, dataset, records, None, IMPORTED)
        assert differences.counts(one, two) == {
            "added": len(after - before),
            "removed": len(before - after),
            "changed": len(before & after & edited),
            "same": len((before & after) - edited),
        }
    finally:
        dataset.delete()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("xy.", max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(
    before=st.dictionaries(st.text("xyz", max_size=2), json_values, max_size=4),
    after=st.dictionaries(st.text("xyz", max_size=2), json_values, max_size=4),
)
def test_changes_lead_from_one_value_to_the_other(before, after):
    changes = [
        [list(each.where)] if each.after is differences.MISSING else [list(each.where), each.after]
        for each in differing(before, after)
    ]
    assert patches.applied(copy.deepcopy(before), changes) == after
    assert (changes == []) == (
        before == after and json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    )


def test_a_tag_moves_and_goes(team, dataset, api):
    services.new_version(team.researcher, dataset, [example("a")], None, IMPORTED)
    services.new_version(team.researcher, dataset, [example("b")], None, IMPORTED)
    base = f"/datasets/{dataset.pk}/versions"
    assert api.client.put(f"/api/v1{base}/1/tags/paper").status_code == 200
    assert api.client.put(f"/api/v1{base}/2/tags/paper").json() == {"name": "paper", "version": 2}
    assert list(dataset.tags.values_list("name", "version__number")) == [("paper", 2)]
    assert api.client.put(f"/api/v1{base}/2/tags/no spaces").status_code == 422
    assert api.delete(f"{base}/1/tags/paper").status_code == 204 and dataset.tags.exists()
    assert api.delete(f"{base}/2/tags/paper").status_code == 204 and not dataset.tags.exists()


def test_the_line_of_descent_draws_what_was_made_from_what(team, dataset):
    one = services.new_version(
        team.researcher, dataset, map(example, "abc"), None, {"from": "import", "file": "x.jsonl"}
    )
    two = services.new_version(
        team.researcher, dataset, [example("a", "B?")], one, {"from": "annotation", "project_name": "Pilot"}
    )
    services.new_version(team.researcher, dataset, [example("b", "C?")], one, {"from": "run", "run": 7})
    services.new_version(team.researcher, dataset, [example("c", "D?")], two, IMPORTED)
    steps = lineage.line(list(queries.versions(dataset)))
    assert [(step.version.number, step.parent, step.lane, step.past) for step in steps] == [
        (4, 2, 0, []),
        (3, 1, 1, [0]),
        (2, 1, 0, [1]),
        (1, None, 0, []),
    ]
    assert steps[-1].into == [0, 1]
    assert [step.origin for step in steps[1:]] == ["Produced by run 7", "Annotated in Pilot", "Imported from x.jsonl"]


def test_the_pages_of_versions_tell_where_each_comes_from(team, dataset, as_researcher):
    one = services.new_version(
        team.researcher, dataset, map(example, "ab"), None, {"from": "import", "file": "x.jsonl"}
    )
    services.new_version(
        team.researcher, dataset, [example("b", "Why not?")], one, {"from": "annotation", "project_name": "Pilot"}
    )
    base = f"/datasets/{dataset.pk}/versions"
    page = as_researcher.get(base).content.decode()
    assert "Annotated in Pilot" in page and "Imported from x.jsonl" in page
    as_researcher.post(f"{base}/2/tags", {"name": "paper"})
    assert "paper" in as_researcher.get(base).content.decode()
    diff = as_researcher.get(f"{base}/2/diff").content.decode()  # compared with the version that it was made of
    assert "prompt.0.content" in diff and "Why not?" in diff
    answer = ApiClient(team.reviewer).get(f"{base}/2/diff", base=1).json()
    assert answer["counts"]["changed"] == 1 and answer["items"][0]["changes"][0]["path"] == "prompt.0.content"


def test_a_version_never_names_an_example_that_is_not_there(team, dataset):
    version = services.new_version(team.researcher, dataset, map(example, "ab"), None, IMPORTED)
    listed = VersionMember.objects.filter(version=version)
    missing = listed.latest("example_id").example_id + 1
    with pytest.raises(IntegrityError, match="not there"), transaction.atomic():
        VersionMember.objects.create(version=version, example_id=missing, position=2)
    with pytest.raises(IntegrityError, match="not there"), transaction.atomic():
        listed.filter(position=0).update(example_id=missing)
    with pytest.raises(IntegrityError, match="lists"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM datasets_example WHERE id = %s", [listed.first().example_id])
    version.dataset.delete()  # removes its members and examples too
    assert not listed.exists()


def test_references_are_looked_up_one_by_one_when_tables_seem_empty(team, dataset):
    """Otherwise each new member is compared with all examples."""
    count = 50
    old = services.new_version(team.researcher, dataset, (example(f"e{i}") for i in range(count)), None, IMPORTED)
    new = DatasetVersion.every.create(dataset=dataset, number=2, digest="", lineage=IMPORTED)
    make_seem_empty()

    def look_ups(index, statement, *values):
        scans = "SELECT pg_stat_get_xact_numscans(%s::regclass)"
        with connection.cursor() as cursor:
            before = cursor.execute(scans, [index]).fetchone()[0]
            cursor.execute(statement, values)
            return cursor.execute(scans, [index]).fetchone()[0] - before

    copied = """
        INSERT INTO datasets_versionmember (version_id, example_id, position)
        SELECT %s, example_id, position FROM datasets_versionmember WHERE version_id = %s
    """
    assert look_ups("datasets_example_pkey", copied, new.pk, old.pk) == count
    VersionMember.objects.all().delete()
    assert look_ups("example_once_per_version", "DELETE FROM datasets_example") == count
    assert known_rows() == [0, 0]


def test_tables_that_seem_empty_are_known_once_they_have_rows(team, dataset, import_rows):
    make_seem_empty()
    first = services.new_version(team.researcher, dataset, map(example, "abc"), None, IMPORTED)
    assert known_rows() == [3, 3]
    services.new_version(team.researcher, dataset, map(example, "d"), first, IMPORTED)
    assert known_rows() == [3, 3], "known well enough"
    make_seem_empty()
    import_rows([row("e1")])
    assert known_rows() == [5, 8]


@pytest.mark.django_db(transaction=True)
def test_what_a_database_knows_is_renewed_without_waiting_for_another_transaction(team):
    """Both could hold one table and wait for the other."""

    def renewed() -> bool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '200ms'")
            planner.analyze(planner.ANALYZE_FROM)
        return True

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {planner.EXAMPLES}")
        assert concurrently([renewed]) == [True]


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_transaction_the_tables_are_waited_for(team, dataset, monkeypatch):
    """A cleaning of the database holds the tables for a while, just when many rows have been added, and renews nothing. It is not waited
    for longer than WAITS_S."""

    def limit_after() -> str:
        planner.analyze(planner.ANALYZE_FROM)
        with connection.cursor() as cursor:
            return cursor.execute("SHOW lock_timeout").fetchone()[0]

    services.new_version(team.researcher, dataset, map(example, "abc"), None, IMPORTED)
    make_seem_empty()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {planner.EXAMPLES} IN SHARE UPDATE EXCLUSIVE MODE")
            later, end = pool.submit(outcome, limit_after), monotonic() + 10
            while monotonic() < end and not later.done() and not somebody_waits():
                sleep(0.01)
            assert not later.done()
        assert later.result(30) == "0" and known_rows() == [3, 3]
        monkeypatch.setattr(planner, "WAITS_S", 0.1)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {planner.EXAMPLES} IN SHARE UPDATE EXCLUSIVE MODE")
            assert concurrently([limit_after]) == ["0"], "it has returned although the table is still locked"


def test_the_database_keeps_what_a_digest_was_taken_of(team, dataset):
    version = services.new_version(team.researcher, dataset, map(example, "ab"), None, IMPORTED)
    services.freeze(team.researcher, version)
    first, second = (member.example for member in version.members.select_related("example").order_by("position"))
    rows = DatasetVersion.objects.filter(pk=version.pk)
    for change in (
        lambda: ExampleRow.objects.filter(pk=first.pk).update(canonical=second.canonical),
        lambda: ExampleRow.objects.filter(pk=first.pk).update(digest="0" * 64),
        lambda: rows.update(number=7),
        lambda: rows.update(digest="0" * 64),
        lambda: rows.update(state="draft"),
        lambda: version.members.filter(position=0).update(position=9),
    ):
        with pytest.raises(IntegrityError, match="cannot change"), transaction.atomic():
            change()
    ExampleRow.objects.filter(pk=first.pk).update(excerpt="columns that are derived may be derived anew")
    rows.update(facets={})


def test_examples_and_words_have_a_dataset_that_is_there(import_rows):
    dataset = import_rows([row("e1")]).version.dataset
    for statement in (
        "UPDATE datasets_example SET dataset_id = 999999",
        "UPDATE datasets_wordhits SET dataset_id = 999999",
        "INSERT INTO datasets_wordhits (dataset_id, origin, word, block, offsets) VALUES (999999, 0, 'a', 0, '')",
    ):
        with (
            pytest.raises(IntegrityError, match="no such dataset"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    with pytest.raises(IntegrityError, match="cannot be deleted"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM datasets_dataset WHERE id = %s", [dataset.pk])
    dataset.delete()
    assert not Dataset.every.exists()

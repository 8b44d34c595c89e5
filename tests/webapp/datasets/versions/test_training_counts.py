"""The counts of a version that recipes need: made once, by split; a worker counts large versions."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webapp.experiments.conftest import make_version
from trainer.contracts.labels import Labels
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import training_counts


@pytest.fixture
def version(team) -> DatasetVersion:
    return make_version(team.owner, train=3, heldout=2)


def again(version) -> DatasetVersion:
    return DatasetVersion.objects.get(pk=version.pk)


def test_counts_are_by_split_and_kept(version):
    found = training_counts.known(version)
    assert found["train"] == {"criteria": 3, "examples": 3, "rubrics": 3, "verifiable": 3, "verified": 3}
    assert found["heldout"]["examples"] == 2
    fresh = again(version)
    with CaptureQueriesContext(connection) as queries:
        assert training_counts.known(fresh) == found
    assert len(queries) == 0


def test_tags_and_domains_are_counted_with_it_of_what_is_trained_on(team):
    version = make_version(team.owner, train=2, heldout=1, tags=("logic", "code", "logic"), domain="maths")
    assert training_counts.labels(version) == {}, "not counted yet"
    training_counts.count_now(version)
    fresh = again(version)
    with CaptureQueriesContext(connection) as queries:
        found = training_counts.labels(fresh)
    assert len(queries) == 0
    assert found == {"tags": Labels({"code": 2, "logic": 2}), "domains": Labels({"maths": 2})}


def test_what_was_counted_another_way_is_counted_again(version):
    DatasetVersion.objects.filter(pk=version.pk).update(training={"form": 0, "train": {"examples": 9}, "heldout": {}})
    assert training_counts.known(again(version))["train"]["examples"] == 3


def test_a_page_does_not_wait_for_a_large_version(version, monkeypatch):
    sent = []
    monkeypatch.setattr(training_counts, "enqueue", lambda *args: sent.append(args))
    version.counts = {"examples": training_counts.AT_ONCE + 1}
    assert training_counts.known(version) is None
    assert training_counts.known(version) is None
    assert sent == [("workers.imports.count_training", version.pk)], "asked once"
    training_counts.count(version.pk)
    assert training_counts.known(again(version))["train"]["examples"] == 3


def test_a_version_that_is_gone_is_not_counted(db):
    training_counts.count(10**9)

"""Ray's description of its machines, cached for pages that must not wait for Ray."""

import pytest
from django.core.cache import cache

from tests.webapp.core.fake_ray import FakeRay
from webapp.core.distributed import cluster
from webapp.machine.places import write_facts

GIB = 2**30
HEAD = {
    "mem": [64 * GIB, 60 * GIB, 6.0, 4 * GIB],
    "gpus": [],
    "raylet": {"state": "ALIVE", "resourcesTotal": {"CPU": 8.0, "node:__internal_head__": 1.0}},
}
WITH_CARDS = {
    "mem": [128 * GIB, 100 * GIB, 21.0, 28 * GIB],
    "gpus": [{"name": "NVIDIA L4", "memoryTotal": 23034}, {"name": "NVIDIA H100", "memoryTotal": 81559}],
    "raylet": {"state": "ALIVE", "resourcesTotal": {"CPU": 16.0, "GPU": 2.0}},
}
GONE = {"raylet": {"state": "DEAD", "resourcesTotal": {"GPU": 8.0}}}


@pytest.fixture
def ray(settings):
    fake = FakeRay()
    write_facts(settings.VAR, "ray", address=fake.address)
    yield fake
    fake.close()


def test_nothing_is_known_until_ray_has_spoken(db, ray):
    assert cluster.last_state() is None


def test_its_living_machines_are_counted(db, ray):
    ray.nodes = [HEAD, WITH_CARDS, GONE]
    cluster.refresh()
    found = cluster.last_state()
    assert (found.gpus, found.cpus) == (2, 24.0)
    assert (found.best_card.card, found.best_card.card_memory) == ("NVIDIA H100", 81559 * 2**20)
    assert found.best_machine.memory == 128 * GIB


def test_what_it_said_last_stays_while_it_is_away(db, ray):
    ray.nodes = [HEAD]
    cluster.refresh()
    ray.broken = True
    cache.delete(cluster.ASKED)
    cluster.refresh()
    assert cluster.last_state().cpus == 8.0


def test_it_is_asked_no_more_often_than_needed(db, ray):
    ray.nodes = [HEAD]
    cluster.refresh()
    ray.nodes = [WITH_CARDS]
    cluster.refresh()
    assert cluster.last_state().gpus == 0
    cache.delete(cluster.ASKED)
    cluster.refresh()
    assert cluster.last_state().gpus == 2


def test_a_machine_that_says_little_counts_as_little(db):
    assert cluster.read([{"raylet": {"state": "ALIVE"}}, {}]) == [cluster.Node()]
    assert cluster.RayCluster((cluster.Node(),)).best_machine is None


def test_it_is_asked_again_at_once_where_it_has_not_answered(db, ray):
    ray.broken = True
    cluster.refresh()
    ray.broken, ray.nodes = False, [WITH_CARDS]
    cluster.refresh()
    assert cluster.last_state().gpus == cluster.last_reported_gpus() == 2

"""Runs, a sweep and a project that the researcher has launched. The reviewer may watch them."""

import pytest

from tests.webapp.annotation.conftest import make_version as make_pairs
from tests.webapp.experiments.conftest import launch, model, places_enough, run, version  # noqa: F401 - fixtures
from tests.webapp.experiments.sweeps.conftest import sweep, wish  # noqa: F401 - fixtures
from webapp.annotation.projects import services as projects
from webapp.notices.models import Notice


@pytest.fixture
def project(team):
    fruit = make_pairs(team.owner, name="fruit", examples=2)
    return projects.create(team.researcher, name="Colours", kind="pairwise", dataset=fruit)


def notice_events(membership) -> list[str]:
    """The events of this person's notices, the oldest first."""
    rows = Notice.objects.filter(user=membership.user).order_by("id")
    return list(rows.values_list("event", flat=True))

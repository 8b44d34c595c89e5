"""MCP's official client, in a process of its own, and a real web server that it speaks with."""

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.live import Server, process, server  # noqa: F401 - fixtures
from tests.team import Team
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from webapp.accounts.models import Membership

from .official import Agent, Official


@pytest.fixture(scope="module")
def official() -> Iterator[Official]:
    found = Official()
    yield found
    found.close()


@pytest.fixture
def connect(official: Official, server: Server) -> Callable[..., Agent]:  # noqa: F811
    """`connect(membership, experiments="read")`: an agent with a token of this person, for these areas."""

    def _connect(membership: Membership, **rights: str) -> Agent:
        return Agent(official, server.url, membership, **rights)

    return _connect


@pytest.fixture
def agent(connect: Callable[..., Agent], team: Team) -> Agent:
    return connect(team.researcher)

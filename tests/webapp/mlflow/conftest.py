import pytest

from .speaking import Speaker


@pytest.fixture
def speaker(team) -> Speaker:
    return Speaker(team.researcher)

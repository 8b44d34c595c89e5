import pytest

from .speaking import Speaker


@pytest.fixture
def speaker(cast) -> Speaker:
    return Speaker(cast.researcher)

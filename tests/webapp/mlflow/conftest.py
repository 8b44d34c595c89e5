import pytest

from .rest_client import RestClient


@pytest.fixture
def rest_client(team) -> RestClient:
    return RestClient(team.researcher)

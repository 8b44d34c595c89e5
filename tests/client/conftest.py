import pytest
from touchstone.http import Server

from webapp.accounts.tokens.services import create_token

from .transport import InProcess


@pytest.fixture
def wire() -> InProcess:
    return InProcess()


@pytest.fixture
def remote(cast, wire) -> Server:
    """The server for a researcher's program, without waits between two tries."""
    secret = create_token(cast.researcher, "client")[1]
    return Server("http://touchstone.test", secret, transport=wire, sleep=lambda seconds: None)


@pytest.fixture(autouse=True)
def spools(tmp_path, monkeypatch):
    monkeypatch.setenv("TOUCHSTONE_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


@pytest.fixture(autouse=True)
def streams_end(short_streams):
    pass

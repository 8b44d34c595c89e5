import pytest
from touchstone import cli, terminal, unsupported
from touchstone.account import ADDRESS, TOKEN
from touchstone.server import Server
from typer.testing import CliRunner

from webapp.accounts.tokens.services import create_token

from .transport import InProcess


@pytest.fixture
def wire() -> InProcess:
    return InProcess()


@pytest.fixture
def remote(team, wire) -> Server:
    """The server for a researcher's program, without waits between two tries."""
    secret = create_token(team.researcher, "client")[1]
    return Server("http://touchstone.test", secret, transport=wire, sleep=lambda seconds: None)


@pytest.fixture(autouse=True)
def spools(tmp_path, monkeypatch):
    monkeypatch.setenv("TOUCHSTONE_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    """Each test is a program of its own, which is told of what is missing."""
    monkeypatch.setattr(unsupported, "_TOLD", set())


@pytest.fixture(autouse=True)
def streams_end(short_streams):
    pass


@pytest.fixture(autouse=True)
def no_account(tmp_path, monkeypatch):
    """Nobody has signed in on this machine."""
    monkeypatch.setenv("TOUCHSTONE_CONFIG", str(tmp_path / "account.json"))
    for name in (ADDRESS, TOKEN):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(remote, monkeypatch):
    """`run("runs", "list")`: the exit code and what was printed."""
    monkeypatch.setattr(terminal, "server", lambda: remote)
    monkeypatch.setenv("COLUMNS", "160")

    def start(*words: str):
        return CliRunner().invoke(cli.app, [str(word) for word in words])

    return start

"""Every program finds its server in the same way: what it gives, then the environment, then what `touchstone login` stored."""

import pytest
import touchstone.wandb as wandb
from touchstone import account, terminal
from touchstone.server import Server


@pytest.fixture
def kept_account():
    account.keep("http://kept.test/api/v1/", "ts_kept")


def address_and_token(address: str = "", token: str = "") -> tuple[str, str]:
    server = Server(address, token)
    return server.address, server.token


def test_a_program_reads_what_login_stored(kept_account):
    assert address_and_token() == ("http://kept.test", "ts_kept")
    assert terminal.server().token == "ts_kept" and wandb.login()


def test_the_environment_goes_before_what_is_stored(kept_account, monkeypatch):
    monkeypatch.setenv(account.TOKEN, "ts_environment")
    assert address_and_token() == ("http://kept.test", "ts_environment")
    monkeypatch.setenv(account.ADDRESS, "http://environment.test")
    assert address_and_token() == ("http://environment.test", "ts_environment")
    assert address_and_token("http://given.test", "ts_given") == ("http://given.test", "ts_given")


def test_a_stored_token_goes_only_to_its_server(kept_account, monkeypatch):
    assert address_and_token("http://kept.test/") == ("http://kept.test", "ts_kept")
    assert address_and_token("http://other.test") == ("http://other.test", "")
    monkeypatch.setenv(account.ADDRESS, "http://other.test")
    with pytest.raises(ValueError, match="no token for http://other.test: run `touchstone login`"):
        terminal.server()


@pytest.mark.parametrize("content", ["", "[]", '{"address": 3, "token": null}', "\x00"])
def test_a_damaged_file_is_nobody_signed_in(content):
    account.place().write_text(content)
    assert address_and_token() == (account.DEFAULT_ADDRESS, "") and not wandb.login()

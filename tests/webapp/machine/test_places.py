"""Ports, sockets and facts."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from webapp.localstack.ports import ReservedPort, free_port, free_ports, is_free
from webapp.machine import lock
from webapp.machine.places import SOCKET_PATH_LIMIT, facts, short_dir, socket_path, write_facts


def test_a_taken_port_gives_the_next_free_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not is_free(port)
        assert free_port(port) != port


def test_who_chooses_at_the_same_moment_chooses_another():
    (wanted,) = free_ports(1)
    together = threading.Barrier(8)

    def choose() -> ReservedPort:
        together.wait()
        return ReservedPort(wanted)

    with ThreadPoolExecutor(8) as pool:
        chosen = list(pool.map(lambda _: choose(), range(8)))
    assert len({each.number for each in chosen}) == 8 and wanted in {each.number for each in chosen}


def test_a_port_that_a_stranger_took_meanwhile_is_given_up_unless_it_was_ours():
    ours = ReservedPort(0)
    first = ours.number
    assert not ours.look_again()
    with socket.create_server(("127.0.0.1", first)):
        assert ours.look_again() and ours.number != first
    again = ours.number
    ours.was_used = True
    with socket.create_server(("127.0.0.1", again)):
        assert not ours.look_again() and ours.number == again


def test_free_ports_are_different():
    assert len(set(free_ports(8))) == 8


def test_a_long_checkout_path_gets_short_sockets(tmp_path):
    deep = tmp_path / ("long" * 40)
    assert len(str(socket_path(deep, "redis.sock"))) <= SOCKET_PATH_LIMIT
    assert socket_path(deep, "redis.sock") == socket_path(deep, "redis.sock")
    assert socket_path(deep, "redis.sock") != socket_path(tmp_path / ("other" * 40), "redis.sock")


def test_a_folder_someone_else_made_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = short_dir(tmp_path)
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="TMPDIR"):
        short_dir(tmp_path)


def test_facts_are_read_back_and_absent_ones_are_empty(tmp_path):
    assert facts(tmp_path, "web") == {}
    write_facts(tmp_path, "web", url="http://127.0.0.1:8003")
    assert facts(tmp_path, "web") == {"url": "http://127.0.0.1:8003"}


def test_only_one_supervisor_holds_a_folder(tmp_path):
    held = lock.take(tmp_path)
    with pytest.raises(lock.AlreadyRunning):
        lock.take(tmp_path)
    held.close()
    lock.take(tmp_path).close()

"""The client, tested with a server that speaks Ray's API."""

from datetime import UTC, datetime

import pytest

from webapp.core.distributed.ray_client import RayAway, RayClient, RayRefused, client
from webapp.machine.lock import take
from webapp.machine.places import write_facts

from ..fake_ray import FakeRay


@pytest.fixture
def server():
    fake = FakeRay(token="secret")
    yield fake
    fake.close()


@pytest.fixture
def ray(server):
    return RayClient(server.address, "secret")


def test_a_job_carries_its_command_and_environment(ray, server):
    ray.submit("run-1-1", "python -m trainer job", {"A": "b"})
    assert server.jobs["run-1-1"]["body"] == {
        "entrypoint": "python -m trainer job",
        "submission_id": "run-1-1",
        "runtime_env": {"env_vars": {"A": "b"}},
        "entrypoint_num_cpus": 0,
    }
    assert ray.job("run-1-1").status == "RUNNING"


def test_submitting_twice_starts_one_job(ray, server):
    ray.submit("run-1-1", "x", {})
    ray.submit("run-1-1", "x", {})
    assert (len(server.jobs), server.posts) == (1, 2)


def test_a_lost_answer_is_no_failure(ray, server):
    server.lose_answers = True
    ray.submit("run-1-1", "x", {})
    assert list(server.jobs) == ["run-1-1"]


def test_an_unknown_job_has_ended_and_has_no_log(ray):
    assert ray.job("nope").has_ended
    assert ray.last_lines("nope") == []
    ray.stop("nope")


def test_the_last_lines_leave_out_blank_ones(ray, server):
    ray.submit("j", "x", {})
    server.jobs["j"]["logs"] = "one\n\ntwo  \nthree\n"
    assert ray.last_lines("j", 2) == ["two", "three"]


def test_a_stopped_job_has_ended(ray):
    ray.submit("j", "x", {})
    ray.stop("j")
    assert ray.job("j").status == "STOPPED"


def test_a_broken_or_absent_ray_is_away(ray, server):
    server.broken = True
    with pytest.raises(RayAway, match="TimeoutError: no agent"):
        ray.submit("j", "x", {})
    server.close()
    with pytest.raises(RayAway, match="does not answer"):
        RayClient("http://127.0.0.1:9", "").job("j")


def test_a_wrong_token_is_refused(server):
    with pytest.raises(RayRefused, match="401"):
        RayClient(server.address, "wrong").submit("j", "x", {})


def test_the_local_head_is_found_where_it_says_it_listens(settings, tmp_path, server):
    with pytest.raises(RayAway, match="never started on this machine"):
        client()
    with take(settings.VAR), pytest.raises(RayAway, match="not been started yet"):
        client()
    (tmp_path / "token").write_text("secret\n")
    write_facts(settings.VAR, "ray", address=server.address, token_file=str(tmp_path / "token"))
    assert client().job("nope").status == "UNKNOWN"


def test_a_local_head_that_is_silent_says_since_when_it_starts_or_that_it_is_stopped(settings):
    def told(since: datetime) -> str:
        write_facts(settings.VAR, "ray", address="http://127.0.0.1:9", since=since.isoformat())
        with pytest.raises(RayAway) as away:
            client().version()
        return str(away.value)

    now, morning = datetime.now(UTC), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert told(morning) == "Ray is stopped; it was last started at 2026-01-02 03:04:05 UTC"
    with take(settings.VAR):
        assert told(morning) == "Ray was started at 2026-01-02 03:04:05 UTC, but it does not answer"
        assert told(now) == f"Ray has been starting since {now:%Y-%m-%d %H:%M:%S} UTC"

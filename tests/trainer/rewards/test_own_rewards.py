"""A user's own rewards: a function of an installed package and a service on the network, and how both fail."""

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.rewards.judged import item
from trainer import reward_process
from trainer.config.rewards.parts import HttpPart, PythonPart
from trainer.judges.chat import Target
from trainer.rewards import Composed, Item, Services, scoring
from trainer.rewards.functions import Function
from trainer.rewards.http_service import HttpService
from trainer.rewards.signing import signature

ROOT = Path(__file__).parents[3]
SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0IGFuZCBvZiBub2JvZHk="  # noqa: S105
CODE = """
import time

def length(responses):
    print("what it prints is nobody's answer")
    return [len(each["response"]) for each in responses]

def odd(responses):
    return [{"value": 0.5, "why": "half", "shown": {"of": each["key"]}} if place else None for place, each in enumerate(responses)]

def solved(responses):
    return [float(each["facts"]["solved"]) if each["facts"] else None for each in responses]

def raises(responses):
    raise KeyError("tone")

def text(responses):
    return "very good"

def hangs(responses):
    if responses[0]["response"] == "stuck":
        time.sleep(60)
    return [1.0 for _ in responses]

def dies(responses):
    import os
    os._exit(7)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with reward functions. All of them are allowed except `secret`."""
    (tmp_path / "politeness.py").write_text(textwrap.dedent(CODE))
    info = tmp_path / "politeness-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: politeness\nVersion: 1.0\n")
    names = ("length", "odd", "solved", "raises", "text", "hangs", "dies", "secret")
    lines = [f"{name} = politeness:{'length' if name == 'secret' else name}" for name in names]
    (info / "entry_points.txt").write_text("[touchstone.rewards]\n" + "\n".join([*lines, "broken = politeness:gone"]))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TOUCHSTONE_REWARD_FUNCTIONS", f"{', '.join(names[:-1])}, broken, absent")


async def rewards(part: Any, items: Sequence[Item], services: Services) -> list[Composed]:
    async def never(reason: str) -> None:
        raise AssertionError(reason)

    try:
        return await scoring.score([part], items, services, never)
    finally:
        await services.close()


def by_function(name: str, *items: Item, seconds: float = 10.0) -> list[Composed]:
    part = PythonPart(entry=name, seconds=seconds)
    return asyncio.run(rewards(part, items, Services(functions={name: Function(name)})))


@pytest.mark.usefixtures("package")
def test_a_function_of_an_installed_package_scores_a_group() -> None:
    found = by_function("length", item("four"), item("seventh", 1))
    assert [each.total for each in found] == [4.0, 7.0]


@pytest.mark.usefixtures("package")
def test_it_may_explain_itself_and_leave_responses_out() -> None:
    none, half = by_function("odd", item(), item(index=1))
    assert (none.total, none.excluded) == (None, "python: it answered nothing")
    assert (half.total, half.parts["python"].why, half.parts["python"].shown) == (0.5, "half", {"of": "row"})


@pytest.mark.usefixtures("package")
def test_it_is_told_what_the_environment_says_of_an_attempt() -> None:
    played = by_function("solved", replace(item(), facts={"solved": True}), item(index=1))
    assert [each.total for each in played] == [1.0, None]


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raises", "python: KeyError: 'tone'"),
        ("text", "python: it answered a str, not a list with one entry for each of 1 response"),
        ("dies", "python: its process ended with status 7"),
        ("broken", "python: cannot be imported: AttributeError: module 'politeness' has no attribute 'gone'"),
        ("secret", "python: the reward function 'secret' is not allowed here: name it in TOUCHSTONE_REWARD_FUNCTIONS"),
        ("absent", "python: no installed package has an entry point 'absent' in the group touchstone.rewards"),
    ],
)
def test_a_function_that_fails_excludes_and_says_why(name: str, why: str) -> None:
    (found,) = by_function(name, item())
    assert (found.total, found.excluded) == (None, why)


@pytest.mark.usefixtures("package")
def test_a_function_that_is_late_is_ended_and_asked_again_for_the_next_group() -> None:
    async def both() -> list[list[Composed]]:
        function = Function("hangs")
        part = PythonPart(entry="hangs", seconds=3.0)
        services = Services(functions={"hangs": function})

        async def never(reason: str) -> None:
            raise AssertionError(reason)

        found = [await scoring.score([part], [item(text)], services, never) for text in ("stuck", "fine")]
        await services.close()
        return found

    [late], [fine] = asyncio.run(both())
    assert (late.total, late.excluded) == (None, "python: took longer than 3 s")
    assert fine.total == 1.0


@pytest.mark.usefixtures("package")
def test_what_may_be_used_is_known_before_the_run() -> None:
    assert reward_process.problem("length") == ""
    assert "not allowed" in reward_process.problem("secret") and "no installed package" in reward_process.problem(
        "absent"
    )
    assert "politeness" not in sys.modules, "nothing of it was imported"


def test_its_process_loads_nothing_of_the_trainer() -> None:
    """Each run with such a part would wait a second for it, in each process that computes rewards."""
    code = "import sys, trainer.reward_process; print(*(name for name in sys.modules if name.startswith('trainer')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["trainer", "trainer.reward_process"]


Handler = Callable[[str, dict[str, str], bytes], tuple[int, bytes]]


def by_service(handler: Handler, *items: Item, retries: int = 0, on_missing: Any = "exclude") -> list[Composed]:
    """`handler` gets path, headers and body, and returns status and body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *lines = head.decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
            body = await reader.readexactly(int(headers["content-length"]))
            status, answer = handler(first.split()[1], headers, body)
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(answer), answer))

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except asyncio.IncompleteReadError:
            writer.close()

    async def main() -> list[Composed]:
        async with await asyncio.start_server(quietly, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            target = Target(f"http://127.0.0.1:{port}/score", "", SECRET, retries=retries, timeout_s=5)
            part = HttpPart(endpoint="mine", on_missing=on_missing)
            return await rewards(part, items, Services(endpoints={"mine": HttpService(target)}))

    return asyncio.run(main())


def test_a_service_gets_a_group_signed_and_answers_with_numbers() -> None:
    seen: list[Any] = []

    def handler(path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        seen.append((path, headers, json.loads(body)))
        at = int(headers["webhook-timestamp"])
        assert signature(SECRET, headers["webhook-id"], at, body)["webhook-signature"] == headers["webhook-signature"]
        return 200, b'{"values": [0.25, {"value": null, "why": "no words"}]}'

    first, second = by_service(handler, item("a"), item("b", 1))
    assert (first.total, second.excluded) == (0.25, "http: no words")
    ((path, headers, told),) = seen
    assert path == "/score" and "authorization" not in headers
    assert [each["response"] for each in told["responses"]] == ["a", "b"]
    assert told["responses"][0]["prompt"] == [{"role": "user", "content": "Hi"}]
    assert told["responses"][0]["rubric"][1] == {"id": "kind", "text": "Is kind.", "points": 2.0}


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (200, b"good", "http: answered something that is not JSON: b'good'"),
        (200, b"[1, 2]", "http: it answered a list of 2, not a list with one entry for each of 1 response"),
        (200, b"[NaN]", "http: it answered nan, which is not a finite number"),
        (200, b'["good"]', "http: it answered 'good', which is not a number"),
        (200, b'[{"score": 1}]', "http: it answered an object without a value"),
        (422, b"{}", "http: answered 422"),
        (401, b"{}", "http: answered 401: check its address and its secret"),
        (500, b"{}", "http: answered 500"),
    ],
)
def test_a_service_that_answers_something_else_excludes(status: int, answer: bytes, why: str) -> None:
    (found,) = by_service(lambda *_: (status, answer), item())
    assert (found.total, found.excluded) == (None, why)


def test_a_service_that_fails_is_asked_again_under_the_same_id() -> None:
    ids: list[str] = []

    def handler(path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        ids.append(headers["webhook-id"])
        return (503, b"") if len(ids) == 1 else (200, b"[1]")

    (found,) = by_service(handler, item(), retries=1)
    assert found.total == 1.0 and len(ids) == 2 and len(set(ids)) == 1


def test_a_service_that_is_away_pauses_where_the_part_says_so() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        by_service(lambda *_: (503, b""), item(), on_missing="pause")
    assert str(caught.value.exceptions[0]) == "http: answered 503"

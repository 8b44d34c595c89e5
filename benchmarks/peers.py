"""Other tools beside ours: how they are installed, and annotation tools under the load of `benchmarks.annotation`: `python -m benchmarks.annotation --peers`.

Each is installed from PyPI into a virtual environment of its own under `var/peers/`, started as its handbook says, and worked in
by 50 people without think time, over HTTP, doing what its own page does between two tasks. A tool that cannot be installed
or does not start here is named with the reason, and the number measured elsewhere stands for it.
"""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from webapp.localstack.ports import free_port

HOME = Path(__file__).parents[1] / "var" / "peers"
INSTALL_S, START_S = 1_800, 300
TASKS = 5_000
TEXT = "The quick brown fox jumps over the lazy dog and tells everybody about it at some length. " * 14
POTATO = f"""
annotation_task_name: bench
task_dir: .
output_annotation_dir: out
output_annotation_format: jsonl
data_files: [data.json]
item_properties: {{id_key: id, text_key: text}}
user_config: {{allow_all_users: true, users: []}}
require_password: false
max_annotations_per_user: {TASKS}
max_annotations_per_item: 2
assignment_strategy: fixed_order
annotation_schemes:
  - {{annotation_type: radio, name: better, description: "Which is better?", labels: [A, B, same]}}
alert_time_each_instance: 10000000
"""


class PeerAway(Exception):
    """It cannot be measured here; the message says why."""


@dataclass
class Load:
    """What came of the people's work: seconds of each submission with the task after it, and what failed."""

    elapsed: float = 0.0
    took: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.took) / self.elapsed

    @property
    def p95_ms(self) -> float:
        return sorted(self.took)[int(0.95 * (len(self.took) - 1))] * 1000


def potato(people: int, seconds: float) -> Load:
    """Potato (Pei et al., 2022), with its own server. Raises PeerAway."""
    program = installed("potato", "potato-annotation") / "potato"
    with tempfile.TemporaryDirectory(prefix="ts-potato-") as folder, _served(program, Path(folder)) as address:
        return asyncio.run(_work(address, people, seconds, _at_potato))


def installed(name: str, package: str) -> Path:
    """The folder of the programs of a virtual environment with the package in it, made if it is not there."""
    bin = HOME / name / "bin"
    done = HOME / name / ".installed"
    if not done.exists():
        print(f"installing {package} into {HOME / name}", flush=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", str(HOME / name)], check=True, timeout=INSTALL_S)
            pip = [str(bin / "pip"), "install", "-q", "--disable-pip-version-check", package]
            subprocess.run(pip, check=True, capture_output=True, text=True, timeout=INSTALL_S)
        except subprocess.TimeoutExpired as error:
            raise PeerAway(f"{package} was not installed within {INSTALL_S} s") from error
        except subprocess.CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines() or ["it said nothing"]
            raise PeerAway(f"{package} cannot be installed: {said[-1][:200]}") from error
        done.touch()
    return bin


@contextlib.contextmanager
def _served(program: Path, folder: Path) -> Iterator[str]:
    lines = (json.dumps({"id": f"k{number}", "text": f"{number}: {TEXT}"}) for number in range(TASKS))
    (folder / "data.json").write_text("\n".join(lines))
    (folder / "config.yaml").write_text(POTATO)
    port = free_port(0)
    with (folder / "log").open("w") as log:
        command = [str(program), "start", "config.yaml", "-p", str(port)]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield _up(f"http://127.0.0.1:{port}", server, folder / "log")
    finally:
        server.terminate()
        server.wait(30)


def _up(address: str, server: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health", timeout=5).status_code < 500:
                return address
        time.sleep(0.5)
    said = log.read_text().strip().splitlines() or ["it said nothing"]
    raise PeerAway(f"it did not start: {said[-1][:200]}")


Step = Callable[[], Awaitable[None]]


async def _work(
    address: str, people: int, seconds: float, enter: Callable[[httpx.AsyncClient, int], Awaitable[Step]]
) -> Load:
    """Everybody signs in, and then does one `step` after the other until the time is over."""
    load = Load()
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=60, follow_redirects=True))
            for _ in range(people)
        ]
        steps = [await enter(client, number) for number, client in enumerate(clients)]
        started = time.monotonic()

        async def person(step: Step) -> None:
            while time.monotonic() < started + seconds:
                began = time.perf_counter()
                try:
                    await step()
                except (httpx.HTTPError, PeerAway) as error:
                    load.failed.append(repr(error))
                else:
                    load.took.append(time.perf_counter() - began)

        await asyncio.gather(*map(person, steps))
        load.elapsed = time.monotonic() - started
    if not load.took:
        raise PeerAway(f"no submission got through: {(load.failed or ['nothing was tried'])[0][:200]}")
    return load


SHOWN = re.compile(r'id="instance_id"[^>]*value="([^"]+)"')


async def _at_potato(client: httpx.AsyncClient, number: int) -> Step:
    """Its page saves the answer, says that it goes on, and then loads itself again."""
    await client.post("/auth", data={"email": f"person{number}", "pass": "x", "action": "login"})
    shown = _shown(await client.get("/annotate"))

    async def step() -> None:
        nonlocal shown
        answer = {"instance_id": shown, "annotations": {"better:A": "true"}, "span_annotations": []}
        (await client.post("/updateinstance", json=answer)).raise_for_status()
        (await client.post("/annotate", json={"action": "next_instance", "instance_id": shown})).raise_for_status()
        shown = _shown(await client.get("/annotate"))

    return step


def _shown(page: httpx.Response) -> str:
    page.raise_for_status()
    found = SHOWN.search(page.text)
    if found is None:
        raise PeerAway("its page shows no task")
    return found[1]

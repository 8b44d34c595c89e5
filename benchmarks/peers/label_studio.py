"""Label Studio (HumanSignal, the open edition) on its own Postgres, with the settings of ours.

gunicorn serves it with two processes a core, the number that its container gives its own server; `label-studio start`
would serve from one process. Two people get each task, as in ours; each has signed up at its page and works with a browser's
session and CSRF token. Between two tasks its page does more than the two requests here, which every answer needs.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg

from benchmarks.peers import PeerAway, installed
from benchmarks.peers.people import TEXT, Load, Step, call, served, work
from webapp.localstack.ports import free_port
from webapp.localstack.postgres import Postgres

SETTINGS = "core.settings.label_studio"
IMPORTED_AT_ONCE = 5_000
LABELS = """
<View>
  <Text name="text" value="$text"/>
  <Choices name="better" toName="text" choice="single"><Choice value="A"/><Choice value="B"/><Choice value="same"/></Choices>
</View>
"""
ANSWER = [{"from_name": "better", "to_name": "text", "type": "choices", "value": {"choices": ["A"]}}]


def measure(people: int, seconds: float, tasks: int) -> Load:
    """Measure in a project of this many tasks; prints how fast they were imported. Raises PeerAway."""
    programs = installed("label-studio", "label-studio", "gunicorn")
    with tempfile.TemporaryDirectory(prefix="ts-label-studio-") as name:
        folder, port = Path(name), free_port(0)
        folder.chmod(0o755)  # as root, Postgres runs as someone else and must reach its folder
        postgres = Postgres(folder / "pg")
        postgres.start()
        try:
            env = _environment(programs, folder, postgres.url(), f"http://127.0.0.1:{port}")
            call([str(programs / "python"), "manage.py", "migrate", "-v0"], _code(programs), env)
            command = [str(programs / "gunicorn"), "core.wsgi", "-b", f"127.0.0.1:{port}", "--timeout", "120"]
            command += ["-w", str(2 * (os.cpu_count() or 1)), "--chdir", str(_code(programs))]
            with served(command, folder, port, env) as address:
                project = asyncio.run(_project(address, tasks))
                with psycopg.connect(postgres.url(), autocommit=True) as connection:
                    connection.execute("ANALYZE")  # as ours: the planner knows how many tasks there are
                return asyncio.run(_at_work(address, project, people, seconds))
        finally:
            postgres.stop()


def _code(programs: Path) -> Path:
    found = sorted(programs.parent.glob("lib/python*/site-packages/label_studio"))
    if not found:
        raise PeerAway("its package does not lie where it did")
    return found[0]


def _environment(programs: Path, folder: Path, database: str, address: str) -> dict[str, str]:
    parts = urlsplit(database)
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder),
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "DJANGO_DB": "default",
        "POSTGRE_NAME": parts.path.strip("/"),
        "POSTGRE_USER": parts.username or "",
        "POSTGRE_PASSWORD": "",
        "POSTGRE_HOST": parse_qs(parts.query)["host"][0],
        "POSTGRE_PORT": "5432",
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"),
        "LABEL_STUDIO_HOST": address,
        "DEBUG": "false",
        "COLLECT_ANALYTICS": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LATEST_VERSION_CHECK": "false",
        "LOG_LEVEL": "WARNING",
    }


async def _project(address: str, tasks: int) -> int:
    async with httpx.AsyncClient(base_url=address, timeout=600, follow_redirects=True) as owner:
        await sign_up(owner, "owner")
        about = {"title": "bench", "label_config": LABELS, "maximum_annotations": 2}
        project = (await _sent(owner, "/api/projects", about))["id"]
        started = time.perf_counter()
        for first in range(0, tasks, IMPORTED_AT_ONCE):
            numbers = range(first, min(first + IMPORTED_AT_ONCE, tasks))
            await _sent(owner, f"/api/projects/{project}/import", [{"text": f"{number}: {TEXT}"} for number in numbers])
        per_s = tasks / (time.perf_counter() - started)
    print(f"Label Studio imported {tasks:,} tasks at {per_s:,.0f} a second", flush=True)
    return int(project)


async def _at_work(address: str, project: int, people: int, seconds: float) -> Load:
    async def enter(client: httpx.AsyncClient, number: int) -> Step:
        await sign_up(client, f"person{number}")
        return await at(client, project)

    return await work(address, people, seconds, enter)


async def sign_up(client: httpx.AsyncClient, name: str) -> None:
    await client.get("/user/signup/")
    form = {"email": f"{name}@bench.local", "password": "long-and-dull-1", "csrfmiddlewaretoken": _csrf(client)}
    (await client.post("/user/signup/", data=form)).raise_for_status()
    (await client.get("/api/current-user/whoami")).raise_for_status()


async def at(client: httpx.AsyncClient, project: int) -> Step:
    """The requests of the page between two tasks: it stores the answer, and then asks for the next task."""
    shown = await _next(client, project)

    async def step() -> None:
        nonlocal shown
        answer = {"result": ANSWER, "lead_time": 1.0, "project": project}
        await _sent(client, f"/api/tasks/{shown}/annotations?project={project}", answer)
        shown = await _next(client, project)

    return step


async def _next(client: httpx.AsyncClient, project: int) -> int:
    task = await _sent(client, f"/api/dm/actions?id=next_task&project={project}", {})
    return int(task["id"])


async def _sent(client: httpx.AsyncClient, path: str, body: Any) -> Any:
    answer = await client.post(path, json=body, headers={"X-CSRFToken": _csrf(client)})
    answer.raise_for_status()
    return answer.json()


def _csrf(client: httpx.AsyncClient) -> str:
    token = client.cookies.get("csrftoken")
    if token is None:
        raise PeerAway("its pages set no CSRF token")
    return token

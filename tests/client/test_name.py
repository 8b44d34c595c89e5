"""The product's name is in one place of the program, and once in the package for other programs."""

import tomllib
from pathlib import Path

import touchstone
from touchstone import http

from trainer.product import NAME, SLUG, USER_AGENT

ROOT = Path(__file__).resolve().parents[2]


def test_the_package_has_the_name_of_the_product():
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    assert SLUG == NAME.lower() == http.NAME == project["name"] == touchstone.__name__
    assert (
        list(project["scripts"]) == [SLUG]
        and http.Connection("http://x.test", "ts_x")._client.headers["User-Agent"] == http.USER_AGENT
    )


def test_no_other_module_writes_a_user_agent_of_its_own():
    assert USER_AGENT.startswith(NAME)
    sources = [path for folder in ("webapp", "trainer", "workers") for path in (ROOT / folder).rglob("*.py")]
    written = [str(path) for path in sources if f'"{NAME}/' in (text := path.read_text()) or f'"{NAME}-' in text]
    assert written == []

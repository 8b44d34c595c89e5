"""What an import of the package loads, in a fresh process."""

import subprocess
import sys

import pytest

HEAVY = ("httpx", "rich", "typer", "yaml", "inspect", "dataclasses", "touchstone.http", "touchstone.api.runs")


def loaded(program: str) -> set[str]:
    told = f"{program}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", told], cwd="client", capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_alone_loads_no_http_client():
    assert loaded("import touchstone").isdisjoint(HEAVY)


@pytest.mark.parametrize("name", ["Server", "ApiError", "Away"])
def test_its_names_are_there_when_they_are_used(name):
    import touchstone

    assert getattr(touchstone, name).__name__ == name and name in dir(touchstone)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        touchstone.Nothing  # noqa: B018


def test_a_client_loads_no_group_before_it_is_used():
    program = "import site; site.main(); import touchstone; server = touchstone.Server('http://x.test', 'ts_x')"
    assert not any(name.startswith("touchstone.api.") for name in loaded(program))
    assert "touchstone.api.runs" in loaded(f"{program}; server.runs")

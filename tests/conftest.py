"""Shared fixtures. The database comes from DATABASE_URL, or from an embedded server started for this session. With WITHOUT_DATABASE there
is none. Tests that ask for a database are marked `database`.

Unit tests need no Redis. Channels and the cache are in memory, and enqueued tasks run only if a test asks for it (fixture `eager`, inside
`django_capture_on_commit_callbacks(execute=True)`).
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest
from channels.layers import channel_layers
from django.conf import settings as django_settings
from django.core.cache import cache
from django.db import transaction
from django.test import TransactionTestCase, override_settings
from django.test import client as django_client
from django.utils.log import configure_logging
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers

from tests import connection_pool, cpu, database_cleanup, schema
from tests.chromium import CHROMIUM, FLAGS, HOW_TO_GET_IT
from tests.team import ApiClient, Team, browser, make_team
from tests.timeouts import SECONDS

EMBEDDED = pytest.StashKey()
WITHOUT_DATABASE = "WITHOUT_DATABASE"
GREPPED = ("browser", "stack")  # MARKED in the Makefile
DATABASE_FIXTURES = {"db", "transactional_db", "live_server"}
# A slow machine is not a failure. The drawn values do not depend on chance: they are the same every day. By default Hypothesis also
# draws constants of our loaded modules, and these depend on commits and on the order of the tests
hypothesis_settings.register_profile("suite", deadline=None, derandomize=True)
hypothesis_settings.load_profile("suite")
providers.is_local_module_file = lambda path: False  # type: ignore[assignment,attr-defined]
IN_MEMORY: dict[str, Any] = {
    "CHANNEL_LAYERS": {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
    "CACHES": {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    "PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"],
    # looks for a file when it is requested; otherwise each new client looks through all files
    "WHITENOISE_AUTOREFRESH": True,
}
# no test cuts the power, and waiting for the disk took longer than many runs of the trainer; `fstat` refuses the same descriptors
os.fsync = os.fstat  # type: ignore[assignment]
# `response.context` has what the view told its page, without a copy for each of the hundreds of templates that the page includes
_client: Any = django_client
_store = _client.store_rendered_templates
_client.store_rendered_templates = lambda store, signal, sender, template, context, **told: (
    _store(store, signal, sender, template, context, **told) if context.template is template else None
)
# imports and thousands of tests make many objects that stay, and checking these took a tenth of the time
gc.set_threshold(50_000, 20, 100)


def pytest_configure(config: pytest.Config) -> None:
    """Starts the embedded database once, in the main process; parallel workers inherit its address."""
    database_cleanup.install()
    if hasattr(config, "workerinput"):
        # the process that it was forked from bound the handlers to streams of its own pytest, which are closed
        configure_logging(django_settings.LOGGING_CONFIG, django_settings.LOGGING)
    if path := os.environ.get("CPU"):
        config.pluginmanager.register(cpu.Plugin(Path(path)))
    # until the end: to change four settings for each test, and back, would take milliseconds
    override_settings(**IN_MEMORY).enable()
    django_settings.DATABASE_POOL = None  # a pool would keep connections to a database that is removed at the end
    os.environ.setdefault("MODEL_ROOTS", tempfile.gettempdir())  # tests make their models there
    django_settings.MODEL_ROOTS = (Path(tempfile.gettempdir()),)
    if {"DATABASE_URL", WITHOUT_DATABASE} & os.environ.keys() or hasattr(config, "workerinput"):
        return
    from webapp.localstack.postgres import Postgres

    folder = Path(tempfile.mkdtemp(prefix="ts-test-"))
    folder.chmod(0o711)  # if we are root, the database runs as another user, who must be able to enter
    server = Postgres(folder, durable=False)
    server.start()
    config.stash[EMBEDDED] = (server, folder)
    os.environ["DATABASE_URL"] = server.url("touchstone")
    os.environ[schema.PROGRAMS] = str(server.install / "bin")
    django_settings.DATABASES["default"].update(HOST=str(server.socket_dir), NAME="touchstone", USER=server.user)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.xdist_schedule import Spreading

    return Spreading(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    from tests import xdist_workers

    xdist_workers.fork(config, specs)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that need the database, by their fixtures or class, before `-m` selects."""
    for item in items:
        asked = DATABASE_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        a_case = issubclass(getattr(item, "cls", None) or object, TransactionTestCase)
        if asked or a_case or item.get_closest_marker("django_db"):
            item.add_marker("database")
    refuse_hidden_marks(items)


def refuse_hidden_marks(items: list[pytest.Item]) -> None:
    """Refuses a file whose tests have a mark that its text does not name, for example an imported one: the Makefile would never run it."""
    marked = {(item.path, mark) for item in items for mark in GREPPED if item.get_closest_marker(mark)}
    hidden = sorted(f"{path.name} ({mark})" for path, mark in marked if f"mark.{mark}" not in path.read_text())
    if hidden:
        raise pytest.UsageError(f"`make` looks for marks in the text of files. Write them into {', '.join(hidden)}.")


def pytest_collection_finish() -> None:
    """Marks the objects that are loaded by now as permanent. The garbage collector then does not check them again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if EMBEDDED in config.stash:
        server, folder = config.stash[EMBEDDED]
        server.stop()
        for written in {folder, server.root}:
            shutil.rmtree(written, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_setup(django_db_modify_db_settings, request):
    """The fixture of pytest-django, with a copy of the migrated schema."""
    if WITHOUT_DATABASE in os.environ:
        pytest.fail(f"{WITHOUT_DATABASE} is set, and this test needs a database", pytrace=False)
    with schema.template():
        request.getfixturevalue("django_db_setup")
    yield
    connection_pool.close()
    database_cleanup.close()


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A path for each test at which it can make a folder. Making a folder for each test would take longer than many tests."""
    folder = tmp_path_factory.mktemp("places", numbered=False)
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def in_memory(request, settings, places):
    """No test writes into the checkout's var/, uses Redis, or spends time on slow password hashes or static files."""
    asked = "tmp_path" in request.fixturenames
    settings.VAR = request.getfixturevalue("tmp_path") / "var" if asked else next(places)
    channel_layers.backends = {}
    cache.clear()


@pytest.fixture(scope="module")
def module_rows(django_db_setup, django_db_blocker, places) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """`with module_rows():` a fixture of a module makes rows, and each test of the module finds them as they were made. They are in a
    transaction around the whole module, and what a test changes is rolled back to them. So no test of such a module may commit.
    """

    @contextmanager
    def _module_rows() -> Iterator[None]:
        with django_db_blocker.unblock(), override_settings(VAR=next(places)):
            yield

    whole = transaction.atomic()
    with _module_rows():
        whole.__enter__()
    yield _module_rows
    with _module_rows():
        transaction.set_rollback(True)
        whole.__exit__(None, None, None)


@pytest.fixture
def team(db) -> Team:
    return make_team()


@pytest.fixture
def as_owner(team: Team):
    return browser(team.owner)


@pytest.fixture
def as_researcher(team: Team):
    return browser(team.researcher)


@pytest.fixture
def as_annotator(team: Team):
    return browser(team.annotator)


@pytest.fixture
def as_outsider(team: Team):
    return browser(team.outsider)


@pytest.fixture
def api(team: Team) -> ApiClient:
    """A client of the API with the researcher's token."""
    return ApiClient(team.researcher)


@pytest.fixture
def short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feed of a run sends its state and ends. It uses the test's own connection, because tests that call every address must not listen
    for an hour.
    """
    from asgiref.sync import sync_to_async

    from webapp.experiments.live import stream

    monkeypatch.setattr(stream, "LONGEST_S", 0.0)
    monkeypatch.setattr(
        stream, "database_sync_to_async", sync_to_async
    )  # the other function closes the connection, and the transaction with it


@pytest.fixture
def eager():
    """Enqueued tasks run at once, in this process, with their real code."""
    from webapp.celery import app

    for name in app.conf.include:
        import_module(name)
    app.conf.task_always_eager = True
    yield app
    app.conf.task_always_eager = False


def lasting(fixture_name: str, config: pytest.Config) -> Literal["session", "module"]:
    return "session" if config.getoption("markexpr") == "browser and not stack" else "module"


@pytest.fixture(scope=lasting)
def chromium() -> Iterator[Any]:
    """A browser that lives as long as a module needs it. Playwright keeps an event loop running in the thread of the tests. Django would
    take that for async code, and async tests of other modules could not share it. In `make test-browser` all tests need a browser, and one
    serves them all, because starting one takes as long as many tests.
    """
    from playwright.sync_api import expect, sync_playwright

    if CHROMIUM is None:
        # if CI has no browser, CI is wrong: tests must not be skipped there
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(HOW_TO_GET_IT)
    with sync_playwright() as playwright:
        expect.set_options(timeout=SECONDS * 1000)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
            yield browser
        browser.close()

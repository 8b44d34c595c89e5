import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.connection_pool import shared_connections
from webapp.datasets.ingest import processes


@pytest.fixture(scope="session", autouse=True)
def forked_readers() -> Iterator[None]:
    """Imports read packed files in forked processes, which start faster: see `tests.reader_processes`."""
    from tests import reader_processes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_process", reader_processes.start)
        yield


@pytest.fixture(scope="session", autouse=True)
def authorities_read_once() -> Iterator[None]:
    """Clients share the certificate authorities of this machine, unless they have their own. Reading them again would take 25 ms for each
    client.
    """
    from httpx._transports import default

    made, told = default.create_ssl_context, cache(default.create_ssl_context)  # type: ignore[attr-defined]
    named = ("SSL_CERT_FILE", "SSL_CERT_DIR")

    def create(verify=True, cert=None, trust_env=True):
        usual = verify is True and cert is None and not any(map(os.environ.get, named))
        return (told if usual else made)(verify=verify, cert=cert, trust_env=trust_env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(default, "create_ssl_context", create)
        yield


@pytest.fixture
def live_server(live_server: Any) -> Iterator[Any]:
    """The fixture of pytest-django. Its requests share connections, because it would open one for each."""
    with shared_connections():
        yield live_server


@pytest.fixture(autouse=True)
def streams_end(short_streams: None) -> None:
    """Short intervals for every test. `live.test_stream` uses the product's intervals."""

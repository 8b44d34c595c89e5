from ipaddress import ip_network
from typing import Any

import pytest

from tests.webapp.webhooks.receiver import run_receiver
from webapp.webhooks import services


@pytest.fixture
def receiver(settings):
    """A receiver on this machine, to which the operator allows connections."""
    settings.WEBHOOK_NETWORKS = (ip_network("127.0.0.0/8"),)
    with run_receiver() as made:
        yield made


@pytest.fixture
def hook(team, receiver):
    """The owner's hook, with its secret as `hook.plain`."""
    made: Any
    made, made.plain = services.create(team.owner, receiver.url, ["run.finished", "run.failed"])
    return made

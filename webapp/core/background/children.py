"""The environment of a process that we start, without what only the server needs."""

import os
from collections.abc import Collection

from django.conf import settings


def environment(without: Collection[str] | None = None) -> dict[str, str]:
    """The environment of this process without the variables of `webapp.settings`, among them keys and addresses with passwords.

    Their names count in any case of letters, as settings read them. `without` names others to leave out instead.
    """
    left_out = settings.SERVER_VARIABLES if without is None else without
    return {name: value for name, value in os.environ.items() if name.upper() not in left_out}

"""The part of a restoration that uses the code of this program in the new database: a process of its own, as Django looks at one.

Each line of its stdin is a step, [name, argument] as JSON; each line of its stdout is the result of a step, or {"problem": words}.

- `tables` makes the tables as they were after the migrations that the argument names.
- `upgrade` brings these tables to the version of this program.
- `reseal` seals secrets that former keys open with the key of the new folder, and returns how many secrets no key opens.
- `look` opens the home page and a page of a dataset, and returns {address: status}.

The database is that of DATABASE_URL.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import django


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    steps: dict[str, Callable[[Any], Any]] = {"tables": tables, "upgrade": upgrade, "reseal": reseal, "look": look}
    for line in sys.stdin:
        name, argument = json.loads(line)
        try:
            told: Any = steps[name](argument)
        except Exception as error:  # any error is reported to the person who restores
            told = {"problem": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)


def tables(applied: list[list[str]]) -> None:
    """Makes the schema of a backup: these migrations and no others."""
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from webapp.core.database.migration_states import fast

    wanted = {(app, name) for app, name in applied}
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    followed = {parent.key for key in wanted for parent in graph.node_map[key].parents if parent.key[0] == key[0]}
    with fast():
        executor.migrate([key for key in graph.nodes if key in wanted and key not in followed])


def upgrade(_: None) -> None:
    from django.core.management import call_command

    call_command("upgrade", verbosity=0, stdout=sys.stderr)


def reseal(_: None) -> int:
    from webapp.core import encryption

    return sum(column.unreadable for column in encryption.encrypt_again())


def look(_: None) -> dict[str, int]:
    """The status of the pages, as an owner sees them; empty if there is no owner yet."""
    from django.conf import settings
    from django.test import Client

    from webapp.accounts.authentication.middleware import SESSION_KEY
    from webapp.accounts.models import Membership, Role
    from webapp.datasets.models import Dataset
    from webapp.identity import second_factor

    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.ALLOWED_HOSTS = ["testserver"]
    owners = Membership.objects.filter(role=Role.OWNER, user__is_active=True).select_related("user")
    dataset = Dataset.objects.filter(workspace__memberships__in=owners).order_by("id").first()
    owner = owners.filter(workspace_id=dataset.workspace_id).first() if dataset else owners.first()
    if owner is None:
        return {}
    client = Client(raise_request_exception=False)
    client.force_login(owner.user, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session[SESSION_KEY] = owner.workspace_id
    session[second_factor.SESSION_KEY] = owner.user_id  # or a workspace that asks for one would show that page instead
    session.save()
    addresses = ["/", *([f"/datasets/{dataset.pk}"] if dataset else [])]
    return {address: client.get(address).status_code for address in addresses}


if __name__ == "__main__":
    main()

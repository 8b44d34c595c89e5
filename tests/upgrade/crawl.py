"""Upgrades the database of DATABASE_URL, then opens every page that its owner can reach; prints what came back as JSON.

A process of its own, since Django looks at one database: `python -m tests.upgrade.crawl`.
"""

import json
import os
import re
from collections import Counter
from urllib.parse import urlsplit

import django

LINK = re.compile(r'(?:href|src|hx-get)="(/[^"#]*)"')
ELSEWHERE = ("/static/", "/sign-out", "/sign-in")
EACH = 25  # addresses of one page that differ in their query or ids


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.WHITENOISE_AUTOREFRESH = True
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("upgrade", verbosity=0, stdout=open(os.devnull, "w"))  # noqa: SIM115  ends with the process
    print(json.dumps({"opened": crawl(), "search": search(), "publishes": published()}))


def client():
    from tests.cast import browser
    from webapp.accounts.models import Membership

    made = browser(Membership.objects.get(role="owner"))
    made.raise_request_exception = False
    return made


def crawl() -> dict[str, int]:
    """{address: status} of what can be reached from the first page by links, and of the API's lists."""
    from django.urls import resolve

    browser, found, waiting, seen = client(), {}, ["/", *lists()], Counter()
    while waiting:
        address = waiting.pop(0)
        path = urlsplit(address).path
        if address in found or path.startswith(ELSEWHERE) or seen[resolve(path).route] >= EACH:
            continue
        seen[resolve(path).route] += 1
        response = browser.get(address)
        found[address] = response.status_code
        if response.status_code == 302:
            waiting.append(response["Location"])
        elif not response.streaming and response.get("Content-Type", "").startswith("text/html"):
            waiting += [each.replace("&amp;", "&") for each in LINK.findall(response.content.decode())]
    return found


def lists() -> list[str]:
    """The addresses of the API that need neither an id nor a parameter."""
    from webapp.api import api

    paths = api.get_openapi_schema()["paths"]
    asks = {path: methods["get"].get("parameters", ()) for path, methods in paths.items() if "get" in methods}
    return [path for path, parameters in asks.items() if not any(each["required"] for each in parameters)]


def search() -> int:
    """How many examples a word of the data finds: the index of words came along."""
    from webapp.datasets.models import Dataset

    dataset = Dataset.objects.get(name="Demo prompts")
    found = client().get(f"/api/v1/datasets/{dataset.pk}/versions/1/examples", {"q": "the"})
    return len(found.json()["items"])


def published() -> bool:
    """Whether the annotated pairs can be published again: what people answered came along."""
    from webapp.accounts.models import Membership
    from webapp.annotation.models import Project
    from webapp.annotation.services import publish

    owner = Membership.objects.select_related("user", "workspace").get(role="owner")
    project = Project.objects.get(kind="pairwise")
    version = publish.publish(owner, project, publish.Choice(what="answers")).version
    return version.counts["preferences"] > 0


if __name__ == "__main__":
    main()

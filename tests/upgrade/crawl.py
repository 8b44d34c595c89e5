"""Upgrades databases, then opens every page that their owner can reach.

`python -m tests.upgrade.crawl` reads a line with the name of a database on the server of DATABASE_URL, and answers with a line of JSON, or
with an empty one if it failed. Then it reads the next name. Each database has its own process, because Django uses one database. The
processes are forked from one that has loaded the product.
"""

import gc
import json
import os
import re
import sys
import traceback
from collections import Counter
from functools import cache
from importlib import import_module
from urllib.parse import urlsplit

import django

LINK = re.compile(r'(?:href|src|hx-get)="(/[^"#]*)"')
ELSEWHERE = ("/static/", "/sign-out", "/sign-in")
NONE = 10**9  # an id that no row has
POINT = ("run_id", "key", "step", "value", "histogram")
EACH = 25  # the number of addresses of one page that differ only in their query or ids


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    load()
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            answer(line.strip())
        if os.waitpid(child, 0)[1]:
            print(flush=True)


def answer(name: str) -> None:
    """Prints the answer, and ends the process."""
    try:
        print(json.dumps(upgraded(name)), flush=True)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def load() -> None:
    """Loads the modules that each fork needs, before there is a connection that the forks would share."""
    from django.conf import settings
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader
    from django.urls import get_resolver

    from tests.pages import compile_templates
    from trainer.config import RECIPES as trainings
    from webapp.api import api
    from webapp.core.forms.model_schemas import schema_of
    from webapp.evaluation.recipes import RECIPES as evaluations

    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.WHITENOISE_AUTOREFRESH = True
    settings.ALLOWED_HOSTS = ["testserver"]
    list(routes(get_resolver()))
    api.get_openapi_schema()
    import_module("webapp.identity.scim.views")  # at the first request of a directory
    compile_templates()
    for schema in (*(each.schema for each in trainings.values()), *(each.schema for each in evaluations.values())):
        schema_of(schema)  # of its forms
    MigrationLoader(None)
    assert connection.connection is None
    gc.collect()
    gc.freeze()  # so that no fork checks these objects again
    gc.set_threshold(50_000, 20, 100)  # like the processes of the tests


def upgraded(name: str) -> dict[str, object]:
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    connection.settings_dict["NAME"] = name
    settings.VAR = settings.VAR / name
    call_command("upgrade", verbosity=0, stdout=open(os.devnull, "w"))  # noqa: SIM115  ends with the process
    publishes = published()  # first, so that there is a publication to open
    opened = crawl()
    told = {"opened": opened, "unlinked": others(opened), "search": search(), "publishes": publishes}
    return {**told, "tokens": tokens(), "points": points(), "responses": responses()}


def points() -> list[list[object]]:
    """Every point, as the product reads it now."""
    from webapp.experiments.models import Point

    return [list(row) for row in Point.objects.values_list(*POINT)]


def client():
    from tests.team import browser
    from webapp.accounts.models import Membership

    made = browser(Membership.objects.get(role="owner"))
    made.raise_request_exception = False
    return made


def crawl() -> dict[str, int]:
    """{address: status} of the pages that links from the first page lead to, and of the API's lists."""
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
    """The addresses of the API that need no id and no parameter, or only one of several."""
    from webapp.api import api

    paths = api.get_openapi_schema()["paths"]
    asks = {path: methods["get"].get("parameters", ()) for path, methods in paths.items() if "get" in methods}
    free = [path for path, parameters in asks.items() if not any(each["required"] for each in parameters)]
    return [path for path in free if path != "/api/v1/runs/table/compare"]  # runs are chosen by ids or by a query


def others(opened: dict[str, int]) -> dict[str, int]:
    """{address: status} of the pages that no link led to. If the database has no such object, an id without a row is used. Addresses that
    take no GET are not pages.
    """
    from django.urls import get_resolver, resolve, reverse

    seen = {resolve(urlsplit(address).path).route for address in opened}
    browser, found = client(), {}
    for route, name, asked in routes(get_resolver()):
        if route in seen or route.startswith("api/") or name is None:
            continue
        ids = {**some(), "job_id": job(route)}
        address = reverse(name, kwargs={each: ids.get(each) or NONE for each in asked})
        if (status := browser.get(address).status_code) != 405:
            found[address] = status
    return found


def routes(resolver, prefix: str = ""):
    for each in resolver.url_patterns:
        if hasattr(each, "url_patterns"):
            yield from routes(each, prefix + str(each.pattern))
        else:
            yield prefix + str(each.pattern), each.name, list(each.pattern.converters)


@cache
def some() -> dict[str, object]:
    """The id of an existing row, by the name of the parameter in addresses; None if there is none."""
    from django.apps import apps

    kinds = {
        "user_id": "accounts.User",
        "workspace_id": "accounts.Workspace",
        "token_id": "accounts.ApiToken",
        "member_id": "accounts.Membership",
        "hook_id": "webhooks.Webhook",
        "delivery_id": "webhooks.Delivery",
        "view_id": "datasets.SavedView",
        "probe_id": "datasets.Probe",
        "example_id": "datasets.Example",
        "invite_id": "annotation.ProjectInvite",
        "publication_id": "annotation.Publication",
        "model_id": "inference.RegisteredModel",
        "endpoint_id": "inference.Endpoint",
        "check_id": "inference.EndpointCheck",
        "judge_id": "judging.Judge",
        "trial_id": "judging.Trial",
        "verdict_id": "judging.Verdict",
        "run_id": "experiments.Run",
        "evaluation_id": "evaluation.Evaluation",
    }
    ids = {name: apps.get_model(kind).objects.values_list("pk", flat=True).first() for name, kind in kinds.items()}
    task = apps.get_model("annotation.Task").objects.select_related("project__version").first()
    dataset = task.project.version.dataset_id
    ids |= {"task_id": task.pk, "project_id": task.project_id, "dataset_id": dataset}
    ids |= {"what": "run", "what_id": ids["run_id"]}
    return ids | {"number": 1, "kind": "csv", "tab": "lineage", "name": "grpo", "behind_id": 0, "recipe": "policy"}


def job(route: str) -> int | None:
    """An id for the kind of job that the route is about."""
    from django.apps import apps

    kinds = {"imports": "datasets.ImportJob", "curations": "datasets.CurationJob", "jobs": "weights.WeightsJob"}
    kind = kinds.get(route.partition("/")[0])
    return apps.get_model(kind).objects.values_list("pk", flat=True).first() if kind else None


def search() -> int:
    """The number of examples that a word of the data finds. It shows that the index of words was upgraded."""
    from webapp.datasets.models import Dataset

    dataset = Dataset.objects.get(name="Demo prompts")
    found = client().get(f"/api/v1/datasets/{dataset.pk}/versions/1/examples", {"q": "the"})
    return len(found.json()["items"])


def responses() -> list[list[int]]:
    """[rollouts that a word of them finds, those that are indexed], before workers index them and after."""
    from django.db.models import Sum

    from webapp.experiments.models import Rollout, WordBlock
    from webapp.experiments.rollouts import indexing

    run, told = Rollout.objects.values_list("run_id", flat=True).first(), []
    for work in (lambda: None, indexing.index_due):
        work()
        found = client().get(f"/api/v1/runs/{run}/rollouts", {"text": "shaded balcony", "limit": 100}).json()["items"]
        told.append([len(found), WordBlock.objects.aggregate(all=Sum("size", default=0))["all"]])
    return [
        *told,
        [Rollout.objects.filter(content__prompt__icontains="shaded balcony").count(), Rollout.objects.count()],
    ]


def published() -> bool:
    """Whether the annotated pairs can be published again. It shows that the answers of people were upgraded."""
    from webapp.accounts.models import Membership
    from webapp.annotation.models import Project
    from webapp.annotation.publishing import services as publish

    owner = Membership.objects.select_related("user", "workspace").get(role="owner")
    project = Project.objects.get(kind="pairwise")
    version = publish.publish(owner, project, publish.Choice(what="answers")).version
    return version.counts["preferences"] > 0


def tokens() -> list[dict[str, str]]:
    """The rights of the tokens."""
    from webapp.accounts.models import ApiToken

    return list(ApiToken.objects.values_list("areas", flat=True))


if __name__ == "__main__":
    main()

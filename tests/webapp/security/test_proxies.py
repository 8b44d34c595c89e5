"""Behind a named proxy, every person has their own address. Without a named proxy, its headers are ignored."""

import os
import subprocess

import pytest
from django.conf import settings

from tests import fork_server

PROGRAM = """
import asyncio, sys
from tests.webapp.security.web_process import load_again
load_again()
asgi = sys.modules["webapp.asgi"]
seen = {}
async def inner(scope, receive, send):
    seen.update(client=scope["client"][0], scheme=scope["scheme"])
app = asgi.application
if hasattr(app, "app"):
    app.app = inner
else:
    app = inner
scope = {"type": "http", "client": ("10.0.0.5", 1), "scheme": "http", "path": "/",
         "headers": [(b"x-forwarded-for", b"198.51.100.9, 203.0.113.7"), (b"x-forwarded-proto", b"https")]}
asyncio.run(app(scope, None, None))
from django.conf import settings
from webapp.core.requests.handler import HSTS
print(seen["client"], seen["scheme"], *HSTS.values())
"""


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "10.0.0.5 http"),
        ({"TRUSTED_PROXIES": "192.0.2.1"}, "10.0.0.5 http"),
        # the address next to the proxy counts: the earlier ones are claims of the person's browser
        (
            {"TRUSTED_PROXIES": "10.0.0.0/8", "PUBLIC_URL": "https://t.example.org"},
            "203.0.113.7 https max-age=31536000",
        ),
        (
            {"PUBLIC_URL": "https://t.example.org", "HSTS_SUBDOMAINS": "true"},
            "10.0.0.5 http max-age=31536000; includeSubDomains",
        ),
        ({"HSTS_SUBDOMAINS": "true"}, "10.0.0.5 http"),
    ],
)
def test_whose_word_counts(env, said):
    given = {name: value for name, value in os.environ.items() if name not in ("PUBLIC_URL", "TRUSTED_PROXIES")}
    program = [*fork_server.command("tests.run_text", ("tests.webapp.security.web_process",)), PROGRAM]
    run = subprocess.run(program, env=given | env, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[-2] == said

"""Where this installation answers."""

import json

from django.conf import settings


def public_url() -> str:
    """The address people and runs reach the server at, without a slash at its end.

    PUBLIC_URL if set; else what `manage.py up` found free and wrote down; else the configured host and port.
    """
    if settings.ENV.public_url:
        return str(settings.ENV.public_url).rstrip("/")
    facts = settings.VAR / "run" / "web.json"
    try:
        return str(json.loads(facts.read_text())["url"])
    except (OSError, ValueError, KeyError):
        return f"http://{settings.ENV.host}:{settings.ENV.port}"

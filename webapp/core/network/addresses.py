"""The address of this installation."""

from django.conf import settings

from webapp.machine.places import facts


def public_url() -> str:
    """The address for people, without a slash at its end.

    PUBLIC_URL if set; else the free port that `manage.py up` stored; else the configured host and port.
    """
    return str(settings.ENV.public_url or _written_down("url")).rstrip("/")


def internal_url() -> str:
    """The address for runs, which may be nearer: INTERNAL_URL; else this machine's own; else the public one."""
    return str(settings.ENV.internal_url or _written_down("local") or public_url()).rstrip("/")


def _written_down(key: str) -> str:
    found = facts(settings.VAR, "web")
    # the facts are of the last `manage.py up` on this folder; without one, where a server would listen by default
    return found.get(key) or f"http://{settings.ENV.host}:{settings.ENV.port}"

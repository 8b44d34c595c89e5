"""Settings that people make for themselves."""

from django.db import transaction
from django.utils import timezone

from webapp.core.problems import Invalid

from ..models import SignedIn, SignInLink, User
from ..sessions import services as sessions


def set_password(user: User, password: str, here: str | None = None) -> None:
    """Sets a password. The caller has checked the person and the quality of the password. Signs out every browser but that of the session
    `here`, and uses up every sign-in link, so that nobody else who holds one can sign in with it."""
    with transaction.atomic():
        sessions.end(SignedIn.objects.filter(user=user).exclude(session_key=here or ""))
        user.set_password(password)
        user.save(update_fields=["password"])
        SignInLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())
        sessions.record_session(user, "password.changed")


def set_theme(user: User, theme: str) -> None:
    """Sets the theme: `system`, `light` or `dark`."""
    if theme not in User.Theme.values:
        raise Invalid("Unknown theme.", {"theme": "must be system, light or dark"})
    User.objects.filter(pk=user.pk).update(theme=theme)

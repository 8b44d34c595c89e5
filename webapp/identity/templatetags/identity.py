"""Whether there is a company's sign-in: the page for it is older than the app that knows."""

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def company_sign_in() -> dict[str, str] | None:
    """Its id in addresses and its name, or None where the installation has none."""
    return {"id": settings.COMPANY, "name": settings.ENV.oidc_name} if settings.ENV.oidc_server_url else None

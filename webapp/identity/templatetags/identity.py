"""The company sign-ins of this installation, for the sign-in page, whose app is below this one."""

from django import template
from django.conf import settings
from django.urls import reverse

register = template.Library()


@register.simple_tag
def company_sign_ins() -> list[dict[str, str]]:
    """The address and the name of each."""
    env = settings.ENV
    known = [
        (env.oidc_server_url, "openid_connect_login", env.oidc_name),
        (env.saml_sso_url, "saml_login", env.saml_name),
    ]
    return [{"start": reverse(view, args=[settings.COMPANY]), "name": name} for url, view, name in known if url]

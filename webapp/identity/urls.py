"""Addresses of second factors, of the company's sign-in and of the rules on both.

The views of factors are allauth's and the pages ours. Names are those that allauth looks for.
"""

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as keys
from django.contrib.auth.decorators import login_not_required
from django.urls import path
from django.views.decorators.cache import never_cache

from webapp.accounts.sign_in import views as accounts

from . import provider, saml, views
from .second_factor import renewed

urlpatterns = [
    path("settings/sign-in", views.rules, name="sign_in_rules"),
    path("settings/sign-in/groups", views.map_group, name="map_group"),
    path("settings/sign-in/groups/<int:row_id>/remove", views.unmap_group, name="unmap_group"),
    path("settings/sign-in/time-outs", views.limit_sessions, name="limit_sessions"),
    path("settings/sign-in/second-factor", views.ask, name="ask_second_factor"),
    # twice here under allauth's names: it sends people there
    path("sign-in", accounts.sign_in, name="account_login"),
    path("sign-out", accounts.sign_out, name="account_logout"),
    path("sign-in/second-factor", never_cache(login_not_required(mfa.authenticate)), name="mfa_authenticate"),
    path("sign-in/passkey", never_cache(login_not_required(keys.login_webauthn)), name="mfa_login_webauthn"),
    path("sign-in/<str:provider_id>/start", provider.start, name="openid_connect_login"),
    path("sign-in/<str:provider_id>/callback", provider.callback, name="openid_connect_callback"),
    path("sign-in/<slug:organization_slug>/saml", saml.start, name="saml_login"),
    path("sign-in/<slug:organization_slug>/saml/answer", saml.answer, name="saml_acs"),
    path("sign-in/<slug:organization_slug>/saml/finish", saml.finish, name="saml_finish_acs"),
    path("sign-in/<slug:organization_slug>/saml/metadata", saml.metadata, name="saml_metadata"),
    path("sign-in/<slug:organization_slug>/saml/logout", saml.no_logout, name="saml_sls"),
    path("settings/second-factor", never_cache(mfa.index), name="mfa_index"),
    path("settings/second-factor/keys", never_cache(mfa.index), name="mfa_list_webauthn"),
    path("settings/second-factor/confirm", never_cache(renewed(account.reauthenticate)), name="account_reauthenticate"),
    path("settings/second-factor/confirm/code", never_cache(renewed(mfa.reauthenticate)), name="mfa_reauthenticate"),
    path(
        "settings/second-factor/confirm/key",
        never_cache(renewed(keys.reauthenticate_webauthn)),
        name="mfa_reauthenticate_webauthn",
    ),
    path("settings/second-factor/app", never_cache(totp.activate_totp), name="mfa_activate_totp"),
    path("settings/second-factor/app/off", never_cache(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path("settings/second-factor/keys/add", never_cache(keys.add_webauthn), name="mfa_add_webauthn"),
    path("settings/second-factor/keys/<int:pk>", never_cache(keys.edit_webauthn), name="mfa_edit_webauthn"),
    path("settings/second-factor/keys/<int:pk>/remove", never_cache(keys.remove_webauthn), name="mfa_remove_webauthn"),
    path("settings/second-factor/codes", views.recovery_codes, name="mfa_view_recovery_codes"),
    path(
        "settings/second-factor/codes/new",
        never_cache(codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
]

from django.urls import path

from . import views

urlpatterns = [
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-in/link/<str:secret>", views.sign_in_link, name="sign_in_link"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("invite/<str:secret>", views.invite_link, name="invite"),
    path("workspaces", views.workspaces, name="workspaces"),
    path("workspaces/<int:workspace_id>/switch", views.switch_workspace, name="switch_workspace"),
    path("settings/profile", views.profile, name="profile"),
    path("settings/sessions/used", views.sessions_used, name="sessions_used"),
    path("settings/sessions/end", views.sessions_end, name="sessions_end"),
    path("settings/address/check", views.address_check, name="address_check"),
    path("verify/<str:secret>", views.verify, name="verify"),
    path("settings/theme", views.theme, name="theme"),
    path("settings/tokens", views.tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/revoke", views.token_revoke, name="token_revoke"),
    path("settings/members", views.members, name="members"),
    path("settings/members/<int:member_id>", views.member_change, name="member_change"),
    path("settings/invites/<int:invite_id>/revoke", views.invite_cancel, name="invite_cancel"),
    path("settings/audit", views.audit, name="audit"),
    path("settings/audit.jsonl", views.audit_export, name="audit_export"),
]

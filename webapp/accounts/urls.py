"""Pages of accounts, listed by their rooms."""

from .addresses import views as addresses
from .audit_log import views as audit_log
from .members import views as members
from .profile import views as profile
from .sessions import views as sessions
from .sign_in import views as sign_in
from .tokens import views as tokens
from .workspaces import views as workspaces

urlpatterns = [
    *sign_in.urls,
    *members.urls,
    *workspaces.urls,
    *profile.urls,
    *sessions.urls,
    *addresses.urls,
    *tokens.urls,
    *audit_log.urls,
]

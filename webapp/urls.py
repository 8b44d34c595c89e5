"""The URL map. Each app lists its own pages; the API and the websockets are beside them."""

from django.urls import include, path, re_path

from webapp import installation, metrics, reference
from webapp.agents import llms, mcp
from webapp.api import api
from webapp.core.requests.unknown_websockets import UnknownWebsocketConsumer
from webapp.experiments.live import consumers
from webapp.home import home
from webapp.identity import directory_views as directories
from webapp.mlflow import pages as mlflow_pages
from webapp.notices import consumers as notices
from webapp.search import search

urlpatterns = [
    path("api/v1/docs", reference.page, name="api_docs"),
    path("api/v1/", api.urls),  # first: the busiest addresses are not compared with those of every page
    path("", home, name="home"),
    path("search.json", search, name="search"),
    path("metrics", metrics.page, name="metrics"),
    path("mcp", mcp.endpoint, name="mcp"),
    path("llms.txt", llms.page, name="llms"),
    path("installation", installation.overview, name="installation"),
    path("installation/people", installation.people, name="installation_people"),
    path("installation/people/<int:user_id>", installation.change_rights, name="installation_rights"),
    path("installation/people/<int:user_id>/sign-out", installation.sign_out, name="installation_sign_out"),
    path("installation/directories", directories.page, name="installation_directories"),
    path("installation/directories/<int:directory_id>/keys", directories.new_key, name="directory_key_new"),
    path("installation/directories/keys/<int:key_id>/revoke", directories.revoke, name="directory_key_revoke"),
    path("installation/audit", installation.audit_log, name="installation_audit"),
    path("installation/reconciler", installation.reconciler, name="installation_reconciler"),
    path("installation/limits", installation.limits, name="installation_limits"),
    path("installation/workspaces/<int:workspace_id>", installation.limits, name="workspace_limits"),
    path("", include("webapp.help.urls")),
    path("scim/v2/", include("webapp.identity.scim.urls")),
    path("mlflow/", include("webapp.mlflow.urls")),
    path("api/2.0/<path:rest>", mlflow_pages.elsewhere),
    path("", include("webapp.core.urls")),
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.identity.urls")),
    path("", include("webapp.webhooks.urls")),
    path("", include("webapp.datasets.urls")),
    path("", include("webapp.annotation.urls")),
    path("", include("webapp.inference.urls")),
    path("", include("webapp.weights.urls")),
    path("", include("webapp.judging.urls")),
    path("", include("webapp.evaluation.urls")),
    path("", include("webapp.objectives.urls")),
    path("", include("webapp.verifiers.urls")),
    path("", include("webapp.experiments.urls")),
    path("", include("webapp.playground.urls")),
    path("", include("webapp.lineage.urls")),
    path("", include("webapp.costs.urls")),
    path("", include("webapp.notices.urls")),
    path("", include("webapp.reports.urls")),
    path("", include("webapp.backups.urls")),
    path("", include("webapp.personal_data.urls")),
]
websocket_urlpatterns = [
    *consumers.websocket_urlpatterns,
    *notices.websocket_urlpatterns,
    re_path("", UnknownWebsocketConsumer.as_asgi()),
]

handler400 = "webapp.core.views.bad_request"
handler403 = "webapp.core.views.forbidden"
handler404 = "webapp.core.views.not_found"
handler500 = "webapp.core.views.server_error"

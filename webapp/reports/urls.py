from django.urls import path

from . import views
from .sharing import public as shared
from .sharing import views as sharing

urlpatterns = [
    path("reports", views.reports, name="reports"),
    path("reports/new", views.report_new, name="report_new"),
    path("reports/preview", views.preview, name="report_preview"),
    path("reports/<int:report_id>", views.report, name="report"),
    path("reports/<int:report_id>/edit", views.report_edit, name="report_edit"),
    path("reports/<int:report_id>/file", views.report_file, name="report_file"),
    path("reports/<int:report_id>/versions", views.report_history, name="report_history"),
    path("reports/<int:report_id>/versions/<int:number>", views.report_version, name="report_version"),
    path(
        "reports/<int:report_id>/versions/<int:number>/restore",
        views.report_version_restore,
        name="report_version_restore",
    ),
    path("reports/<int:report_id>/share", sharing.report_share, name="report_share"),
    path("reports/<int:report_id>/share/<int:link_id>/newest", sharing.report_share_newest, name="report_share_newest"),
    path("shared/<str:secret>/charts/<int:place>/compare", shared.chart, name="shared_chart"),
    path("shared/<str:secret>/charts/<int:place>/curves", shared.chart_curves, name="shared_chart_curves"),
    path("reports/<int:report_id>/act", views.report_act, name="report_act"),
]

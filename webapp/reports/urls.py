from django.urls import path

from . import views

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
    path("reports/<int:report_id>/act", views.report_act, name="report_act"),
]

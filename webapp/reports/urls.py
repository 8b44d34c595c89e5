from django.urls import path

from . import views

urlpatterns = [
    path("reports", views.reports, name="reports"),
    path("reports/new", views.report_new, name="report_new"),
    path("reports/preview", views.preview, name="report_preview"),
    path("reports/<int:report_id>", views.report, name="report"),
    path("reports/<int:report_id>/edit", views.report_edit, name="report_edit"),
    path("reports/<int:report_id>/act", views.report_act, name="report_act"),
]

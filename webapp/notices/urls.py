from django.urls import path

from . import views

urlpatterns = [
    path("notices", views.notices, name="notices"),
    path("notices/read", views.read, name="notices_read"),
    path("settings/notices", views.settings, name="notice_settings"),
    path("watch/<str:kind>/<int:subject_id>", views.watch, name="watch"),
]

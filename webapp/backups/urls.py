from django.urls import path

from . import views

urlpatterns = [
    path("installation/backups", views.backups, name="installation_backups"),
    path("installation/backups/start", views.start, name="backup_start"),
    path("installation/backups/<int:backup_id>/cancel", views.cancel, name="backup_cancel"),
]

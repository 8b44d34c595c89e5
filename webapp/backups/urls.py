from django.urls import path

from . import views

urlpatterns = [
    path("installation/backups", views.backups, name="installation_backups"),
    path("installation/backups/start", views.start, name="backup_start"),
    path("installation/backups/<int:backup_id>/cancel", views.cancel, name="backup_cancel"),
    path("installation/backups/drills/start", views.start_drill, name="drill_start"),
    path("installation/backups/drills/<int:drill_id>/cancel", views.cancel_drill, name="drill_cancel"),
]

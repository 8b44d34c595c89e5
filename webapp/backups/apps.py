from django.apps import AppConfig


class BackupsConfig(AppConfig):
    name = "webapp.backups"
    label = "backups"

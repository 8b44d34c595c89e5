from django.apps import AppConfig


class LocalstackConfig(AppConfig):
    name = "webapp.localstack"
    label = "localstack"

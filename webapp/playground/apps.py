from django.apps import AppConfig


class PlaygroundConfig(AppConfig):
    name = "webapp.playground"
    label = "playground"

from django.apps import AppConfig


class WeightsConfig(AppConfig):
    name = "webapp.weights"
    label = "weights"

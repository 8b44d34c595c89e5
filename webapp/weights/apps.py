from django.apps import AppConfig


class WeightsConfig(AppConfig):
    name = "webapp.weights"
    label = "weights"

    def ready(self) -> None:
        from . import selection

        selection.register()

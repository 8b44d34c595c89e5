from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "webapp.notices"
    label = "notices"

    def ready(self) -> None:
        from . import dispatch  # noqa: F401 - from here on it hears what is announced

from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "webapp.judging"
    label = "judging"

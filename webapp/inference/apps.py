from django.apps import AppConfig


class InferenceConfig(AppConfig):
    name = "webapp.inference"
    label = "inference"

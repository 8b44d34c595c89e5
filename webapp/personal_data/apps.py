from django.apps import AppConfig


class PersonalDataConfig(AppConfig):
    name = "webapp.personal_data"
    label = "personal_data"

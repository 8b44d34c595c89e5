from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "webapp.accounts"
    label = "accounts"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in

        from .sessions import services as sessions

        user_logged_in.connect(sessions.began, dispatch_uid="accounts.sessions")

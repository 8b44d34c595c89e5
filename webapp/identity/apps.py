from django.apps import AppConfig

from webapp.core.sealed import sealed_inside


class IdentityConfig(AppConfig):
    name = "webapp.identity"

    def ready(self) -> None:
        # an authenticator app's secret, and the seed of recovery codes; keys of passkeys are public
        sealed_inside("mfa.Authenticator", "data", "secret", "seed")

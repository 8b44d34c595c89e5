from django.apps import AppConfig

from webapp.core.encryption import sealed_inside


class IdentityConfig(AppConfig):
    name = "webapp.identity"

    def ready(self) -> None:
        from allauth.mfa import signals

        from . import recovery_codes, second_factor

        signals.authenticator_added.connect(second_factor.added)
        signals.authenticator_removed.connect(second_factor.removed)
        signals.authenticator_reset.connect(second_factor.reset)
        signals.authentication_failed.connect(second_factor.failed)
        recovery_codes.install()
        # an authenticator app's secret, and the seed of recovery codes from before; keys of passkeys are public
        sealed_inside("mfa.Authenticator", "data", "secret", "seed")

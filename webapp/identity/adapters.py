"""Our answers to django-allauth: how sessions open, where people go, how secrets are stored, what a person may give up."""

from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

from trainer.product import NAME
from webapp.accounts.models import User
from webapp.accounts.sessions.services import record_session
from webapp.accounts.sign_in.last_step import BACKEND
from webapp.core.encryption import Unreadable, seal, unseal

from . import company, provider, second_factor

NOT_LET_IN = "The company's sign-in did not let you in. Try again."
UNREADABLE = (
    "This installation cannot read your second factor any more. The person who runs it can remove it from your account."
)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Accounts are made by invitations, open links of projects and the company's directory, never by a form of allauth's."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def login(self, request: HttpRequest, user: User) -> None:
        user.backend = BACKEND
        super().login(request, user)
        if getattr(request, "company_asked_for_two", False):
            second_factor.note_company_factor(request, user)
        methods = [str(each.get("type") or each.get("method")) for each in get_authentication_records(request, user)]
        record_session(user, "session.started", by=methods)

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """The response to an inactive account, for ways to sign in without a password, such as passkeys."""
        return company.refusal(request, company.CLOSED)

    def add_message(self, *args: object, **kwargs: object) -> None:
        """Adds no message: the pages say what happened, in our own words."""

    def send_notification_mail(self, *args: object, **kwargs: object) -> None:
        """Sends no mail: the audit log records it."""


class CompanyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Sign-in by the company's own provider."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Finds or creates the account, and updates its roles by the groups of the sign-in."""
        if not provider.fits(sociallogin):
            company.logger.warning("refused an ID token that was made for another sign-in")
            raise ImmediateHttpResponse(company.refusal(request, NOT_LET_IN))
        company.connect_account(request, sociallogin)
        request.company_asked_for_two = company.asked_for_two(sociallogin)  # type: ignore[attr-defined]  # `login` reads it

    def on_authentication_error(
        self, request: HttpRequest, provider: object, exception: Exception | None = None, **told: object
    ) -> None:
        company.logger.warning("the company's sign-in let nobody in: %s", exception or told.get("error"))
        raise ImmediateHttpResponse(company.refusal(request, NOT_LET_IN))


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    def get_totp_issuer(self) -> str:
        return NAME

    def encrypt(self, text: str) -> str:
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """The decrypted text. Raises ValidationError, which the form shows, if the key of the installation was changed and lost."""
        try:
            return unseal(encrypted_text)
        except Unreadable as error:
            raise ValidationError(UNREADABLE) from error

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return second_factor.may_give_up(authenticator)

    def generate_authenticator_name(self, user: AbstractBaseUser, type: Authenticator.Type) -> str:
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return "Passkey" if not count else f"Passkey {count + 1}"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Passkeys are bound to the host of PUBLIC_URL, or to the one that the browser has come to."""
        entity: dict[str, str] = super().get_public_key_credential_rp_entity()
        public = urlsplit(settings.ENV.public_url or "").hostname
        return entity | {"name": NAME} | ({"id": public} if public else {})

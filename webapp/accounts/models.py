"""People, the workspaces they share, and the tokens of their scripts."""

import secrets
from hashlib import sha256

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils import timezone

from webapp.core.encryption import EncryptedField

from .areas import in_words


class Role(models.TextChoices):
    """Roles, ordered by their rights: each role may do all that the lower ones may."""

    OWNER = "owner", "Owner"
    RESEARCHER = "researcher", "Researcher"
    REVIEWER = "reviewer", "Reviewer"
    ANNOTATOR = "annotator", "Annotator"


RANK = {Role.ANNOTATOR: 0, Role.REVIEWER: 1, Role.RESEARCHER: 2, Role.OWNER: 3}


class Proof(models.TextChoices):
    """The proof that an address belongs to the person of the account. See `addresses`."""

    NONE = "", "not verified"
    INVITATION = "invitation", "verified by an invitation"  # which an owner passed on
    MAIL = "mail", "verified by mail"
    SERVER = "server", "verified by the person who runs the server"
    COMPANY = "company", "verified by your company's sign-in"


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, name: str = "", proof: str = Proof.NONE) -> "User":
        user = self.model(email=email.strip().lower(), name=name, proof=proof)
        user.set_password(password)  # None: no password works until one is set
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    class Theme(models.TextChoices):
        SYSTEM = "system", "System"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    email = models.EmailField(unique=True)
    proof = models.CharField(max_length=12, choices=Proof.choices, default=Proof.NONE, blank=True)
    name = models.CharField(max_length=120, blank=True)
    is_active = models.BooleanField(default=True)
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.SYSTEM)
    date_joined = models.DateTimeField(auto_now_add=True)
    is_administrator = models.BooleanField(default=False)  # of the installation; see `manage.py admin`
    may_create_workspaces = models.BooleanField(default=False)  # administrators may in any case
    erased = models.BooleanField(default=False)  # stands for an erased person: see `webapp.personal_data.erasing`

    USERNAME_FIELD = "email"
    objects = UserManager()

    def __str__(self) -> str:
        return self.name or self.email

    @property
    def verified(self) -> bool:
        """Whether something has shown that the address is this person's."""
        return self.proof != Proof.NONE


class Workspace(models.Model):
    name = models.CharField(max_length=120)
    slug = models.SlugField(unique=True)
    asks_second_factor = models.BooleanField(default=False)  # closed to sessions without one: see `webapp.identity`
    # minutes without use, and minutes in any case, after which its people must sign in again: see `time_outs`
    idle_minutes = models.PositiveIntegerField(null=True, blank=True)
    session_minutes = models.PositiveIntegerField(null=True, blank=True)
    # whether its people may show comparisons and reports by links that need no account
    allows_share_links = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    members = models.ManyToManyField(  # type: ignore[attr-defined, unused-ignore]  # the checker takes our relation `models` for this
        User, through="Membership", related_name="workspaces"
    )

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "workspace"], name="one_membership_per_workspace")]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace} as {self.role}"

    def may(self, role: Role) -> bool:
        """Whether this membership carries at least the rights of `role`."""
        return RANK[Role(self.role)] >= RANK[role]


class Removal(models.Model):
    """A person was removed from a workspace. Open links do not let them in until an owner invites them again."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="removals")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="removals")
    removed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="one_removal_per_workspace")]

    def __str__(self) -> str:
        return f"{self.user} was removed from {self.workspace}"


class FormerRemoval(models.Model):
    """The removal of a person whose account was erased later. The row names nobody: see `removals`."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="former_removals")
    key = EncryptedField()  # of this digest alone
    digest = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"a removal from {self.workspace}"


def hash_secret(secret: str) -> str:
    """The SHA-256 of a secret. Secrets carry 256 random bits, so a plain hash is enough: nobody can guess them."""
    return sha256(secret.encode()).hexdigest()


class ApiToken(models.Model):
    """A script's key to one workspace. Only its hash is stored; `prefix` lets people recognise it.

    `areas`: {area: "read" or "write"}, see `areas`. An area that it does not name is closed.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    areas = models.JSONField(default=dict)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)  # to the minute
    last_used_from = models.CharField(max_length=45, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)  # None: until it is revoked

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"

    @property
    def scope(self) -> str:
        """The highest right that the token has in any area."""
        return "write" if "write" in self.areas.values() else "read"

    @property
    def may(self) -> str:
        """The rights in words."""
        return in_words(self.areas)

    @property
    def over(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @staticmethod
    def new_secret() -> str:
        return "ts_" + secrets.token_urlsafe(32)


class SignInLink(models.Model):
    """A link that opens a session once. It is claimed by a conditional update, so that two clicks sign in only one browser."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"sign-in link for {self.user}"


class SignedIn(models.Model):
    """A place where a person is signed in: what is known of the session with this key. See `sessions`."""

    session_key = models.CharField(max_length=40, unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="signed_in")
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField()  # to the minute
    address = models.CharField(max_length=45, blank=True)
    agent = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return f"{self.user} since {self.created_at}"


class AddressCheck(models.Model):
    """A link that was mailed to the address of an account. A person who opens it while signed in to that account has shown that the address
    is theirs."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="address_checks")
    email = models.EmailField()
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"check of {self.email}"


class InviteQuerySet(models.QuerySet["Invite"]):
    """Finds invitations."""

    def open(self) -> "InviteQuerySet":
        """The invitations that let somebody in: neither used nor expired, and made by a person who is still an owner of the workspace. Only an owner
        says who may come in, so their word ends with their role."""
        owners = Membership.objects.filter(
            workspace=models.OuterRef("workspace"), user=models.OuterRef("created_by"), role=Role.OWNER
        )
        return self.filter(models.Exists(owners), accepted_at=None, expires_at__gt=timezone.now())


class Invite(models.Model):
    """An invitation of one address into a workspace. The link carries the secret; the person must own or create the account of that address.

    `mailed`: the link was sent to the address and shown to nobody, so opening it proves more than an owner's word.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invites")
    email = models.EmailField()
    role = models.CharField(max_length=12, choices=Role.choices)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    mailed = models.BooleanField(default=False)

    objects = InviteQuerySet.as_manager()

    def __str__(self) -> str:
        return f"invitation of {self.email}"

    @property
    def proof(self) -> Proof:
        return Proof.MAIL if self.mailed else Proof.INVITATION


class Quota(models.Model):
    """Limits of a workspace, or of the installation if it has no workspace. None: it has no limit of its own. See `quotas`."""

    workspace = models.ForeignKey(Workspace, null=True, blank=True, on_delete=models.CASCADE, related_name="quotas")
    running_runs = models.BigIntegerField(null=True, blank=True)
    gpus = models.BigIntegerField(null=True, blank=True)
    imports_at_once = models.BigIntegerField(null=True, blank=True)
    import_bytes = models.BigIntegerField(null=True, blank=True)
    logged_bytes = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace"], name="one_quota_per_workspace", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return f"limits of {self.workspace or 'the installation'}"

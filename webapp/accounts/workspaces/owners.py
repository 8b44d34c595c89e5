"""The member on whose behalf a command acts."""

from django.core.management.base import CommandError

from ..models import Membership, Role


def acting_owner(slug: str | None) -> Membership:
    """An owner of the workspace; without `slug`, of the only workspace or of the demo's. Raises CommandError otherwise."""
    owners = Membership.objects.filter(role=Role.OWNER).select_related("user", "workspace").order_by("id")
    if slug:
        owners = owners.filter(workspace__slug=slug)
    slugs = list(dict.fromkeys(owner.workspace.slug for owner in owners))
    if not slugs:
        raise CommandError(
            f"There is no workspace {slug!r}."
            if slug
            else "There is no workspace yet. Run `make run` once; it makes one."
        )
    if len(slugs) > 1 and "demo" not in slugs:
        raise CommandError(f"There are several workspaces; choose one with --workspace: {', '.join(slugs)}.")
    chosen = slugs[0] if len(slugs) == 1 else "demo"
    return next(owner for owner in owners if owner.workspace.slug == chosen)

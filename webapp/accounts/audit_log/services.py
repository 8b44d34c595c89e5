"""That the log was taken is logged as well."""

from webapp.core import audit

from ..models import Membership


def record_audit_export(membership: Membership, asked: dict[str, str]) -> None:
    """`asked`: by what the log was filtered."""
    audit.record(membership, membership.user, "audit.exported", membership.workspace, filter=asked)

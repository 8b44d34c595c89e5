"""Exports of the audit log are logged as well."""

from webapp.core.auditing import audit

from ..models import Membership


def record_audit_export(membership: Membership, asked: dict[str, str]) -> None:
    """Records that the audit log was exported. `asked`: the filter of the export."""
    audit.record(membership, membership.user, "audit.exported", membership.workspace, filter=asked)

"""Fetching is authorisation: an endpoint of the caller's workspace, or 404."""

from django.http import Http404

from webapp.accounts.models import Membership

from ..access import may_read, may_write
from ..models import Endpoint, EndpointCheck


def endpoint_read(membership: Membership, endpoint_id: int) -> Endpoint:
    return _endpoint(may_read(membership), endpoint_id)


def endpoint_write(membership: Membership, endpoint_id: int) -> Endpoint:
    return _endpoint(may_write(membership), endpoint_id)


def _endpoint(membership: Membership, endpoint_id: int) -> Endpoint:
    rows = Endpoint.objects.select_related("workspace", "registered_model", "created_by")
    found = rows.filter(workspace_id=membership.workspace_id, id=endpoint_id).first()
    if found is None:
        raise Http404("no such endpoint")
    return found


def check_read(membership: Membership, endpoint_id: int, check_id: int) -> EndpointCheck:
    endpoint = endpoint_read(membership, endpoint_id)
    found = EndpointCheck.objects.filter(endpoint=endpoint, id=check_id).first()
    if found is None:
        raise Http404("no such check")
    found.endpoint = endpoint
    return found

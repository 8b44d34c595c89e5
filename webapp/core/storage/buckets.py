"""Clients of object storage, and the one place that knows its credentials: Amazon S3 and compatible stores, Google Cloud Storage, Azure.

Backups and the artifact store each have settings of their own, with the same names after another prefix. Credentials are handed to the
library and to nobody else; no message and no log has them.
"""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store

from ..network import destinations
from ..network.destinations import Fence

logger = logging.getLogger(__name__)
Store = AzureStore | GCSStore | S3Store
RETRY_S = 60.0  # how long the library tries one request again
FORMS = "s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://ACCOUNT/CONTAINER/FOLDER"
ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}


class UnusableBucket(Exception):
    """The address is not that of a bucket, or a client cannot be made; the message says what to check."""


@dataclass(frozen=True)
class BucketAccess:
    """The access to a bucket: the settings with the prefix `name`, such as BACKUP for BACKUP_ENDPOINT and BACKUP_SECRET."""

    name: str
    endpoint: str | None
    networks: tuple[IPv4Network | IPv6Network, ...]
    region: str | None
    access_key: str | None = field(repr=False)
    secret: str | None = field(repr=False)


def access(name: str) -> BucketAccess:
    """The access from the settings of this installation as they are now."""
    names = ("endpoint", "networks", "region", "access_key", "secret")
    return BucketAccess(name, *(getattr(settings.ENV, f"{name.lower()}_{each}") for each in names))


def open_bucket(address: str, by: BucketAccess, within_s: float | None = None) -> Store:
    """Opens a bucket by the scheme of its address. `within_s`: a request is given up after this long and not tried again. Credentials are
    the settings' or, if there are none, what the library finds: its own variables, a machine's role. Raises UnusableBucket, and Refused if
    its network is closed."""
    parts = urlsplit(address)
    if parts.username or parts.password or parts.query:
        raise UnusableBucket(
            f"The address of a bucket must not hold credentials: set {by.name}_ACCESS_KEY and {by.name}_SECRET."
        )
    make = _MAKE.get(parts.scheme)
    if make is None or not parts.netloc:
        raise UnusableBucket(f"{address} is not a bucket: name {FORMS}.")
    endpoint = by.endpoint or _of_the_library(parts.scheme)
    hurried = within_s is not None
    common: dict[str, Any] = {
        "retry_config": {"max_retries": 0 if hurried else 6, "retry_timeout": timedelta(seconds=within_s or RETRY_S)},
        "client_options": {
            "timeout": timedelta(seconds=within_s or 300.0),
            "connect_timeout": timedelta(seconds=within_s or 10.0),
            "allow_http": _may_be_reached(endpoint, by),
        },
    }
    try:
        return make(parts.netloc, parts.path.strip("/"), endpoint, by, common)
    except (BaseError, ValueError, OSError) as error:
        logger.warning("no client for %s: %s", address, type(error).__name__)
        raise UnusableBucket(f"{address} cannot be used: check its address and the credentials.") from None


def no_such(address: str, by: BucketAccess) -> str:
    return f"There is no bucket {address}: make it first, or check its address and {by.name}_ENDPOINT."


def error_text(error: BaseError, address: str, by: BucketAccess) -> str:
    """The error in our words: the library's words hold addresses, and addresses may hold signatures."""
    status = re.search(r"status code: (\d{3})", str(error))
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return f"{address} refuses this server: check the credentials and their permissions."
    if status and status[1] == "404":
        return no_such(address, by)
    if status:
        return f"{address} answers {status[1]}; nothing is lost; try again."
    return (
        f"{address} does not answer, or its answer is not that of a bucket ({type(error).__name__}): check its address, "
        f"{by.name}_ENDPOINT and the credentials."
    )


def _of_the_library(scheme: str) -> str | None:
    """An endpoint that the library's own variables name: it must be checked as well."""
    return next((value for name in ENDPOINTS[scheme] if (value := os.environ.get(name))), None)


def _may_be_reached(endpoint: str | None, by: BucketAccess) -> bool:
    """Whether it speaks plain HTTP. Raises Refused if its network is not open."""
    if endpoint is None:
        return False
    url = destinations.parse(endpoint, instead_of_password=f"{by.name}_ACCESS_KEY and {by.name}_SECRET are for that")
    Fence(by.networks, f"{by.name}_NETWORKS").addresses(url.host, destinations.port(url), url.scheme)
    return url.scheme == "http"


def _given(**options: str | None) -> Any:  # each kind of store has a type of its own for it
    return {name: value for name, value in options.items() if value}


def _s3(bucket: str, folder: str, endpoint: str | None, by: BucketAccess, common: Mapping[str, Any]) -> Store:
    given = _given(access_key_id=by.access_key, secret_access_key=by.secret, region=by.region, endpoint=endpoint)
    return S3Store(bucket, prefix=folder or None, config=given, **common)


def _gcs(bucket: str, folder: str, endpoint: str | None, by: BucketAccess, common: Mapping[str, Any]) -> Store:
    given = _given(service_account_key=by.secret, base_url=endpoint)
    return GCSStore(bucket, prefix=folder or None, config=given, **common)


def _azure(account: str, path: str, endpoint: str | None, by: BucketAccess, common: Mapping[str, Any]) -> Store:
    container, _, folder = path.partition("/")
    given = _given(account_name=account, account_key=by.secret, endpoint=endpoint)
    return AzureStore(container, prefix=folder or None, config=given, **common)


_MAKE = {"s3": _s3, "gs": _gcs, "az": _azure}

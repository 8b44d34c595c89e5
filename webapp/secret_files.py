"""Secrets in files, as container platforms hand them out: `SECRET_KEY_FILE=/run/secrets/secret_key`. Imports no Django."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

SECRETS = frozenset(
    {
        "secret_key",
        "secret_key_fallbacks",
        "database_url",
        "database_password",
        "redis_url",
        "redis_password",
        "metrics_token",
        "mail_url",
        "oidc_client_secret",
        "artifact_store_secret",
        "backup_secret",
        "otel_exporter_otlp_headers",
    }
)


class SecretFiles(PydanticBaseSettingsSource):
    """Reads the file that NAME_FILE names, without the newline at its end. Raises OSError that names the variable if that fails."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {}
        for name in sorted(SECRETS):
            variable = f"{name.upper()}_FILE"
            if path := os.environ.get(variable):
                found[name] = _read(variable, Path(path))
        return found


def _read(variable: str, path: Path) -> str:
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OSError(f"{variable}={str(path)!r}: the file cannot be read ({type(error).__name__})") from error
    if not text:
        raise OSError(f"{variable}={str(path)!r}: the file is empty")
    return text


def with_password(url: str | None, password: str | None) -> str | None:
    """`url` with the password, if it has none yet."""
    if not url or not password:
        return url
    parts = urlsplit(url)
    if parts.password is not None:
        return url
    user, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}").geturl()

"""The environment variables, read and checked once; `webapp.settings` is made of them. Imports no Django."""

import re
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, FilePath, IPvAnyNetwork, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from webapp.secret_files import SECRETS, SecretFiles, with_password

BASE_DIR = Path(__file__).resolve().parent.parent


class Environment(BaseSettings):
    """Every variable Touchstone reads; `.env.example` lists them with the same words."""

    model_config = SettingsConfigDict(env_file=BASE_DIR / ".env", env_ignore_empty=True, extra="ignore")

    touchstone_var: Path = Field(BASE_DIR / "var", description="Folder for everything written at run time")
    secret_key: str | None = Field(
        None, min_length=32, description="Key that signs sessions; if absent, one is made under var/ at the first start"
    )
    secret_key_fallbacks: Annotated[tuple[Annotated[str, Field(min_length=32)], ...], NoDecode] = Field(
        (),
        description="Former values of SECRET_KEY, separated by commas; stored secrets that they encrypted can still be read. Remove them after "
        "manage.py reencrypt",
    )
    debug: bool = Field(False, description="Show tracebacks in the browser; never switch this on for a shared machine")
    host: str = Field("127.0.0.1", description="Address on which the web server listens")
    port: int = Field(8000, ge=0, le=65535, description="Preferred port; if it is in use, the next free port is taken")
    public_url: str | None = Field(
        None, pattern=r"^https?://", description="Address at which people and runs reach the server"
    )
    internal_url: str | None = Field(
        None, pattern=r"^https?://", description="Address at which runs reach the server, if it is not PUBLIC_URL"
    )
    database_url: str | None = Field(
        None,
        pattern=r"^postgres(ql)?://",
        description="Address of a Postgres server; an embedded one is started if absent",
    )
    database_password: str | None = Field(None, description="Password for DATABASE_URL, if the address has none")
    redis_url: str | None = Field(
        None,
        pattern=r"^(redis|rediss|unix)://",
        description="Address of a Redis server; an embedded one is started if absent",
    )
    redis_password: str | None = Field(None, description="Password for REDIS_URL, if the address has none")
    ray_address: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of Ray's job API (the dashboard's address); a local head node is started if absent",
    )
    ray_token_file: Path | None = Field(None, description="File with the token of the Ray cluster")
    max_running_runs: int | None = Field(
        None,
        ge=1,
        description="Runs, and jobs that need weights, that may run at the same time; the others wait. If absent: half of the processors; "
        "on a cluster, no limit",
    )
    trainer_command: str | None = Field(
        None,
        description="Command with which a node of the Ray cluster starts a run; this checkout and interpreter if absent",
    )
    artifact_store: str | None = Field(
        None,
        description="Bucket for models, checkpoints and the artifacts of runs (s3://BUCKET/FOLDER, gs://BUCKET/FOLDER, "
        "az://ACCOUNT/CONTAINER/FOLDER), so that a cluster needs no shared disk; folders under var/ if absent",
    )
    artifact_store_endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of ARTIFACT_STORE's object storage, for this server and the nodes of the cluster; needed if it is not Amazon's, "
        "Google's or Microsoft's own",
    )
    artifact_store_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Private networks that ARTIFACT_STORE_ENDPOINT may be in, such as 10.1.0.0/16; none if absent"
    )
    artifact_store_region: str | None = Field(
        None, description="Region of ARTIFACT_STORE's bucket, for S3; us-east-1 if absent"
    )
    artifact_store_access_key: str | None = Field(
        None,
        description="Access key of ARTIFACT_STORE's bucket, for S3; the provider's own variables and the machine's role if absent",
    )
    artifact_store_secret: str | None = Field(
        None,
        description="Secret of ARTIFACT_STORE's bucket, in the form of BACKUP_SECRET; the nodes of the cluster never get it",
    )
    touchstone_scratch: str | None = Field(
        None,
        description="On a node of the cluster, with ARTIFACT_STORE: folder for the files that runs fetch and write; the folder for temporary "
        "files if absent",
    )
    logged_silence_hours: int = Field(
        6,
        ge=0,
        le=8760,
        description="Hours without data after which a run that another program logs here counts as lost; 0: never",
    )
    webhook_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Private networks that webhooks may reach, such as 10.1.0.0/16,127.0.0.1/32; none if absent"
    )
    endpoint_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Private networks that model endpoints may be in, such as 127.0.0.1/32; none if absent"
    )
    clamd: str | None = Field(
        None,
        pattern=r"^(tcp://[^/]+|unix:///.+)$",
        description="Address of the virus scanner clamd, which checks uploaded files: tcp://host:3310 or unix:///path; no scanner if absent",
    )
    clamd_away: Literal["refuse", "take"] = Field(
        "refuse",
        description="How to treat files that CLAMD did not check, because it does not answer or the file is above its StreamMaxLength: "
        "refuse or take them",
    )
    audit_syslog: str | None = Field(
        None,
        pattern=r"^((udp|tcp|tls)://[^/]+|unix:///.+)$",
        description="Receiver of syslog that gets the audit log: tls://host:6514, tcp://host:601, udp://host:514 or unix:///dev/log; none if absent",
    )
    model_roots: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Folders in which everybody may register models, such as /srv/models; var/models if absent. Administrators may register "
        "models in any folder",
    )
    touchstone_reward_functions: str | None = Field(
        None,
        description="Names of the reward functions of installed packages that runs may use, separated by commas; none if absent",
    )
    touchstone_sampler_hosts: str | None = Field(
        None,
        description="Hosts of vLLM servers from which runs may sample, separated by commas; only this machine if absent",
    )
    touchstone_device: Literal["cpu"] | None = Field(
        None,
        description="cpu: runs use the processor even if there are GPUs; if absent, they use a GPU if torch finds one",
    )
    trusted_proxies: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (),
        description="Addresses of the proxies in front of the server, such as 10.0.0.5,127.0.0.1; the server takes a "
        "client's address and scheme from their headers",
    )
    hsts_subdomains: bool = Field(
        False,
        description="Browsers use only https for the subdomains of PUBLIC_URL's host too; switch this on only if all of them have https",
    )
    session_hours: float = Field(
        720, gt=0, le=8760, description="Hours after which people must sign in again, even if they are active"
    )
    session_idle_hours: float = Field(
        168, gt=0, le=8760, description="Hours without use after which people must sign in again"
    )
    metrics_token: str | None = Field(None, min_length=20, description="Token that Prometheus sends to read /metrics")
    metrics_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Networks that may read /metrics without a token, such as 127.0.0.1/32; none if absent"
    )
    backup_folder: str | None = Field(
        None,
        description="The place of backups: a folder, best on another disk, or a bucket (s3://BUCKET/FOLDER, gs://BUCKET/FOLDER, "
        "az://ACCOUNT/CONTAINER/FOLDER); if it is set, commands need not name it, and administrators can start a backup on a page",
    )
    backup_endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of BACKUP_FOLDER's object storage, if it is not Amazon's, Google's or Microsoft's own",
    )
    backup_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Private networks that BACKUP_ENDPOINT may be in, such as 10.1.0.0/16; none if absent"
    )
    backup_region: str | None = Field(None, description="Region of BACKUP_FOLDER's bucket, for S3; us-east-1 if absent")
    backup_access_key: str | None = Field(
        None,
        description="Access key of BACKUP_FOLDER's bucket, for S3; the provider's own variables and the machine's role if absent",
    )
    backup_secret: str | None = Field(
        None,
        description="Secret of BACKUP_FOLDER's bucket: S3's secret access key, Azure's account key, or the JSON key of a Google service account",
    )
    backup_key_file: Path | None = Field(
        None, description="File with the passphrase that encrypts backups; they are not encrypted if absent"
    )
    mail_url: str | None = Field(
        None,
        pattern=r"^(smtp|smtps|smtp\+plain)://",
        description="Mail server for invitations and notices, as smtp://NAME:PASSWORD@HOST:587 (smtps: TLS from the start; smtp+plain: no "
        "TLS). If absent, no mail is sent, and people pass on the links themselves",
    )
    mail_from: str = Field("touchstone@localhost", description="Sender of mail")
    oidc_server_url: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of your company's OpenID provider; no sign-in with OpenID if absent",
    )
    oidc_client_id: str = Field("", description="Client id of this installation at the OpenID provider")
    oidc_client_secret: str = Field("", description="Secret of OIDC_CLIENT_ID")
    oidc_name: str = Field("your company", description="Name of the OpenID provider on the sign-in button")
    oidc_groups_claim: str = Field("groups", description="Name of the OpenID claim that lists a person's groups")
    oidc_trusts_addresses: bool = Field(
        False,
        description="Accept e-mail addresses that the OpenID provider does not mark as verified; safe only if people cannot choose their "
        "address there",
    )
    company_second_factor: Literal["said", "always"] = Field(
        "said",
        description="When the company's sign-in, by OpenID or SAML, counts as a second factor: if the provider says so, or always",
    )
    company_second_factor_classes: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Further values of acr or AuthnContextClassRef that mean a second factor, separated by commas; see docs/accounts.md",
    )
    otel_exporter_otlp_endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of a receiver of OpenTelemetry traces (OTLP over HTTP); no traces are made if absent. Needs pip install "
        "'.[tracing]'",
    )
    otel_exporter_otlp_headers: str | None = Field(
        None,
        description="Headers for the receiver of traces, as NAME=VALUE separated by commas, such as a key; runs send none",
    )
    saml_sso_url: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of your company's SAML sign-in; no sign-in with SAML if absent",
    )
    saml_entity_id: str = Field("", description="Entity id of your company's SAML provider")
    saml_certificate_file: FilePath | None = Field(
        None, validate_default=True, description="File with the SAML provider's signing certificate, in PEM"
    )
    saml_name: str = Field("your company", description="Name of the SAML provider on the sign-in button")
    saml_groups_attribute: str = Field("groups", description="Name of the SAML attribute that lists a person's groups")
    saml_trusts_addresses: bool = Field(
        False,
        description="Accept the e-mail addresses that the SAML provider names; safe only if people cannot choose their address there",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe level that is logged"
    )
    log_format: Literal["line", "json"] = Field(
        "line", description="Format of the log: `line` for people, `json` for programs"
    )

    @field_validator(
        "webhook_networks",
        "endpoint_networks",
        "trusted_proxies",
        "metrics_networks",
        "backup_networks",
        "artifact_store_networks",
        "model_roots",
        "secret_key_fallbacks",
        "company_second_factor_classes",
        mode="before",
    )
    @classmethod
    def _listed(cls, value: object) -> object:
        return [part for part in value.replace(",", " ").split() if part] if isinstance(value, str) else value

    @field_validator("artifact_store")
    @classmethod
    def _is_a_bucket(cls, value: str | None) -> str | None:
        return value and _bucket(value)

    @field_validator("backup_folder")
    @classmethod
    def _is_a_place(cls, value: str | None) -> str | None:
        if value is None or "://" not in value:
            return value and str(Path(value).resolve())
        return _bucket(value)

    @field_validator("clamd", "audit_syslog")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value and not value.startswith("unix:"):
            parts = urlsplit(value)
            if not parts.hostname or parts.port == 0 or parts.username is not None or parts.query or parts.fragment:
                raise ValueError(f"must have the form {parts.scheme}://HOST:PORT or unix:///PATH")
            parts.hostname.encode("idna")  # as it does when a name is looked up; raises a ValueError
        return value

    @field_validator("database_password", "redis_password")
    @classmethod
    def _has_an_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        url = str(info.field_name).replace("password", "url")
        # a wrong address is missing here, and reported separately
        if value and url in info.data and not info.data[url]:
            raise ValueError(f"{url.upper()} is not set, so there is no sign-in to configure")
        return value

    @field_validator("saml_certificate_file")
    @classmethod
    def _is_a_certificate(cls, value: FilePath | None, info: ValidationInfo) -> FilePath | None:
        if value and "-----BEGIN CERTIFICATE-----" not in value.read_text(errors="replace"):
            raise ValueError("holds no certificate in PEM")
        if info.data.get("saml_sso_url") and not (value and info.data.get("saml_entity_id")):
            raise ValueError("SAML_SSO_URL needs SAML_ENTITY_ID and SAML_CERTIFICATE_FILE too")
        return value

    @model_validator(mode="after")
    def _sign_in(self) -> "Environment":
        self.database_url = with_password(self.database_url, self.database_password)
        self.redis_url = with_password(self.redis_url, self.redis_password)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, SecretFiles(settings_cls), dotenv_settings


def _bucket(value: str) -> str:
    if not re.fullmatch(r"(s3|gs|az)://[^/@?]+(/[^@?]*)?", value):
        raise ValueError(
            "the address of a bucket has the form s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://ACCOUNT/CONTAINER/FOLDER"
        )
    return value.rstrip("/")


def read() -> Environment:
    try:
        return Environment()
    except ValidationError as error:
        for problem in error.errors():
            name = str(problem["loc"][0]).upper()
            shown = "" if name.lower() in SECRETS else f"={problem['input']!r}"
            print(f"touchstone: {name}{shown}: {problem['msg']} (see .env.example)", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a file of a secret
        print(f"touchstone: {error}", file=sys.stderr)
        sys.exit(2)


def pass_on(found: Environment, environ: MutableMapping[str, str]) -> None:
    """Sets the variables that the trainer reads in `environ`, because the trainer has no settings file. Processes that we start get them
    too."""
    traces = ("otel_exporter_otlp_endpoint", "otel_exporter_otlp_headers")  # exporters read these names
    ours = ("touchstone_reward_functions", "touchstone_sampler_hosts", "touchstone_scratch", "touchstone_device")
    for name in (*ours, *traces):
        if value := getattr(found, name):
            environ[name.upper()] = value

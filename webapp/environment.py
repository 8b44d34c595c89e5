"""What the environment says, read and checked once: `webapp.settings` is made of it. Imports no Django."""

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
    secret_key: str | None = Field(None, min_length=32, description="Signs sessions; made once under var/ if absent")
    secret_key_fallbacks: Annotated[tuple[Annotated[str, Field(min_length=32)], ...], NoDecode] = Field(
        (),
        description="Former values of SECRET_KEY, which still open what they sealed; empty after manage.py reencrypt",
    )
    debug: bool = Field(False, description="Tracebacks in the browser; never on a shared machine")
    host: str = Field("127.0.0.1", description="Address the web server listens on")
    port: int = Field(8000, ge=0, le=65535, description="Preferred port; the next free one is taken if it is in use")
    public_url: str | None = Field(
        None, pattern=r"^https?://", description="Address people and runs reach the server at"
    )
    internal_url: str | None = Field(
        None, pattern=r"^https?://", description="Address runs reach the server at, where it is not PUBLIC_URL"
    )
    database_url: str | None = Field(
        None, pattern=r"^postgres(ql)?://", description="A Postgres server; embedded if absent"
    )
    database_password: str | None = Field(None, description="Password for DATABASE_URL, where it names none")
    redis_url: str | None = Field(
        None, pattern=r"^(redis|rediss|unix)://", description="A Redis server; embedded if absent"
    )
    redis_password: str | None = Field(None, description="Password for REDIS_URL, where it names none")
    ray_address: str | None = Field(
        None, pattern=r"^https?://", description="Ray's job API (dashboard) address; a local head is started if absent"
    )
    ray_token_file: Path | None = Field(None, description="File with the token of the Ray cluster")
    max_running_runs: int | None = Field(
        None,
        ge=1,
        description="Runs, and jobs that need weights, that may run at once, the others wait; half of the processors if absent, any number on a cluster",
    )
    trainer_command: str | None = Field(
        None, description="How a node of the Ray cluster starts a run; this checkout and interpreter if absent"
    )
    artifact_store: str | None = Field(
        None,
        description="Bucket for models, checkpoints and what runs leave behind (s3://BUCKET/FOLDER, gs://BUCKET/FOLDER, "
        "az://ACCOUNT/CONTAINER/FOLDER), so that a cluster needs no shared disk; folders under var/ if absent",
    )
    artifact_store_endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of that object storage, as this server and the nodes of the cluster reach it, if it is not Amazon's, "
        "Google's or Microsoft's own",
    )
    artifact_store_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Private networks that ARTIFACT_STORE_ENDPOINT may be in, such as 10.1.0.0/16; none if absent"
    )
    artifact_store_region: str | None = Field(None, description="Region of that bucket, for S3; us-east-1 if absent")
    artifact_store_access_key: str | None = Field(
        None,
        description="Access key of that bucket, for S3; the provider's own variables and the machine's role if absent",
    )
    artifact_store_secret: str | None = Field(
        None,
        description="What goes with it, as BACKUP_SECRET does; nodes never get it",
    )
    touchstone_scratch: str | None = Field(
        None,
        description="On a node of the cluster: folder for what runs fetch and write, with ARTIFACT_STORE; among temporary files if absent",
    )
    logged_silence_hours: int = Field(
        6,
        ge=0,
        le=8760,
        description="Hours after which a run that another program logs here counts as lost when nothing comes; 0 is never",
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
        description="Virus scanner that looks at files people send: clamd, at tcp://host:3310 or unix:///path; none if absent",
    )
    clamd_away: Literal["refuse", "take"] = Field(
        "refuse", description="What becomes of files that CLAMD did not look at: away, or above its StreamMaxLength"
    )
    audit_syslog: str | None = Field(
        None,
        pattern=r"^((udp|tcp|tls)://[^/]+|unix:///.+)$",
        description="Receiver of syslog that gets the audit log: tls://host:6514, tcp://host:601, udp://host:514 or unix:///dev/log; none if absent",
    )
    model_roots: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Folders in which everybody may register models, such as /srv/models; var/models if absent. Administrators may name any",
    )
    touchstone_reward_functions: str | None = Field(
        None,
        description="Names of reward functions out of installed packages that runs may use, with commas; none if absent",
    )
    touchstone_sampler_hosts: str | None = Field(
        None, description="Hosts of vLLM servers that runs may sample from, with commas; this machine only if absent"
    )
    touchstone_device: Literal["cpu"] | None = Field(
        None,
        description="cpu keeps runs on the processor, whatever GPUs there are; a GPU where torch finds one if absent",
    )
    trusted_proxies: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (),
        description="Addresses of the proxies in front, such as 10.0.0.5,127.0.0.1: who and how they say is believed",
    )
    hsts_subdomains: bool = Field(
        False,
        description="Browsers shall reach hosts below PUBLIC_URL's by https alone, too; only if all of them speak it",
    )
    session_hours: float = Field(
        720, gt=0, le=8760, description="Hours after which people sign in again, whatever they do"
    )
    session_idle_hours: float = Field(
        168, gt=0, le=8760, description="Hours without use after which people sign in again"
    )
    metrics_token: str | None = Field(None, min_length=20, description="Token with which Prometheus reads /metrics")
    metrics_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Networks that read /metrics without a token, such as 127.0.0.1/32; none if absent"
    )
    backup_folder: str | None = Field(
        None,
        description="Where backups go: a folder, best on another disk, or a bucket (s3://BUCKET/FOLDER, gs://BUCKET/FOLDER, "
        "az://ACCOUNT/CONTAINER/FOLDER); commands then need not name it, and administrators can start one",
    )
    backup_endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Address of object storage that is not Amazon's, Google's or Microsoft's own",
    )
    backup_networks: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (), description="Private networks that BACKUP_ENDPOINT may be in, such as 10.1.0.0/16; none if absent"
    )
    backup_region: str | None = Field(None, description="Region of the bucket, for S3; us-east-1 if absent")
    backup_access_key: str | None = Field(
        None,
        description="Access key of the bucket, for S3; the provider's own variables and the machine's role if absent",
    )
    backup_secret: str | None = Field(
        None,
        description="What goes with it: S3's secret access key, Azure's account key, or the JSON key of a Google service account",
    )
    backup_key_file: Path | None = Field(
        None, description="File with the passphrase that encrypts backups; they are not encrypted if absent"
    )
    mail_url: str | None = Field(
        None,
        pattern=r"^(smtp|smtps|smtp\+plain)://",
        description="A mail server for invitations and notices, as smtp://NAME:PASSWORD@HOST:587 (smtps: TLS at once; smtp+plain: none); "
        "people pass links on themselves if absent",
    )
    mail_from: str = Field("touchstone@localhost", description="Sender of mail")
    oidc_server_url: str | None = Field(
        None, pattern=r"^https?://", description="Your company's OpenID provider; no such sign-in if absent"
    )
    oidc_client_id: str = Field("", description="What the provider calls this installation")
    oidc_client_secret: str = Field("", description="The secret that goes with OIDC_CLIENT_ID")
    oidc_name: str = Field("your company", description="Whose sign-in the button names")
    oidc_groups_claim: str = Field("groups", description="The claim that lists a person's groups")
    oidc_trusts_addresses: bool = Field(
        False,
        description="Believe addresses that the provider does not mark as verified; only if nobody can choose theirs",
    )
    company_second_factor: Literal["said", "always"] = Field(
        "said",
        description="When the company's sign-in, by OpenID or SAML, counts as a second factor: where the provider says so, or always",
    )
    company_second_factor_classes: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Further values of acr or AuthnContextClassRef by which the provider says so, with commas; see docs/accounts.md",
    )
    otel_exporter_otlp_endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="A receiver of OpenTelemetry traces (OTLP over HTTP); none are made if absent. Needs pip install '.[tracing]'",
    )
    otel_exporter_otlp_headers: str | None = Field(
        None, description="What is sent along to the receiver, as NAME=VALUE with commas, such as a key; runs send none"
    )
    saml_sso_url: str | None = Field(
        None, pattern=r"^https?://", description="Address of your company's SAML sign-in; no such sign-in if absent"
    )
    saml_entity_id: str = Field("", description="What your company's SAML provider calls itself")
    saml_certificate_file: FilePath | None = Field(
        None, validate_default=True, description="File with the certificate, in PEM, with which the provider signs"
    )
    saml_name: str = Field("your company", description="Whose SAML sign-in the button names")
    saml_groups_attribute: str = Field("groups", description="The attribute that lists a person's groups")
    saml_trusts_addresses: bool = Field(
        False, description="Believe the addresses that the SAML provider names; only if nobody can choose theirs"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least severe level logged")
    log_format: Literal["line", "json"] = Field("line", description="`line` for people, `json` for programs")

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
                raise ValueError(f"is named {parts.scheme}://HOST:PORT or unix:///PATH")
            parts.hostname.encode("idna")  # as a name is looked up; raises a ValueError
        return value

    @field_validator("database_password", "redis_password")
    @classmethod
    def _has_an_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        url = str(info.field_name).replace("password", "url")
        # an address that is wrong is missing here, and told of by itself
        if value and url in info.data and not info.data[url]:
            raise ValueError(f"{url.upper()} is not set, so there is nothing to sign in to")
        return value

    @field_validator("saml_certificate_file")
    @classmethod
    def _is_a_certificate(cls, value: FilePath | None, info: ValidationInfo) -> FilePath | None:
        if value and "-----BEGIN CERTIFICATE-----" not in value.read_text(errors="replace"):
            raise ValueError("holds no certificate in PEM")
        if info.data.get("saml_sso_url") and not (value and info.data.get("saml_entity_id")):
            raise ValueError("SAML_SSO_URL needs SAML_ENTITY_ID and SAML_CERTIFICATE_FILE beside it")
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
        raise ValueError("a bucket is named s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://ACCOUNT/CONTAINER/FOLDER")
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
    """The trainer knows no settings file: what it reads from the environment is put there, for what we start as well."""
    traces = ("otel_exporter_otlp_endpoint", "otel_exporter_otlp_headers")  # read by what sends them, by these names
    ours = ("touchstone_reward_functions", "touchstone_sampler_hosts", "touchstone_scratch", "touchstone_device")
    for name in (*ours, *traces):
        if value := getattr(found, name):
            environ[name.upper()] = value

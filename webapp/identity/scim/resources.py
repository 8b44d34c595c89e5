"""The attributes of a person and of a group by SCIM (RFC 7643), and the service's description of itself."""

import unicodedata
from typing import Annotated, Any, ClassVar

from pydantic import Field
from scim2_models import URN as Urn
from scim2_models import (
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    ExtensibleStringEnum,
    Filter,
    GroupMembership,
    Mutability,
    Patch,
    Reference,
    Required,
    Resource,
    ResourceType,
    Schema,
    ScimPolicy,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

MOST = 200  # resources in one answer
PAGE = 100  # where the directory does not say how many
# Directories send attributes that we do not keep; Entra also sends a `value` with what it removes, and writes to
# `emails[type eq "work"].value` where there is no such address yet
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


class Name(ComplexAttribute):
    formatted: str | None = None
    family_name: str | None = None
    given_name: str | None = None


class Email(ComplexAttribute):
    class Type(ExtensibleStringEnum):
        work = "work"
        home = "home"
        other = "other"

    value: Annotated[str | None, Required.true] = None
    type: Type | None = None
    primary: bool | None = None


class User(Resource[Any]):
    """A person with an account here."""

    __schema__ = Urn("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    Name: ClassVar[type[ComplexAttribute]] = Name
    display_name: str | None = None
    active: Annotated[bool | None, Required.true] = None
    emails: Annotated[list[Email] | None, Required.true] = None
    Emails: ClassVar[type[ComplexAttribute]] = Email
    groups: Annotated[list[GroupMembership] | None, Mutability.read_only] = None
    Groups: ClassVar[type[ComplexAttribute]] = GroupMembership


class GroupMember(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class Group(Resource[Any]):
    """A group of people. Owners of workspaces give roles to its name."""

    __schema__ = Urn("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true, Uniqueness.server] = None
    members: list[GroupMember] | None = None
    Members: ClassVar[type[ComplexAttribute]] = GroupMember


def fold(text: str) -> str:
    """The form in which names are compared: in small letters, composed (RFC 7643, userName is not caseExact)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


def schemas() -> list[Schema]:
    return [each.to_schema() for each in (User, Group, ServiceProviderConfig, ResourceType, Schema)]


def resource_types() -> list[ResourceType]:
    return [ResourceType.from_resource(User), ResourceType.from_resource(Group)]


def config() -> ServiceProviderConfig:
    return ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MOST),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=False),
        etag=ETag(supported=True),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Bearer token",
                description="A key that an administrator of this installation made",
                primary=True,
            )
        ],
    )

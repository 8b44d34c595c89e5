"""Tokens over the API."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import StrictIn

from ..access import BY_HAND, by_hand, require
from ..areas import Area, Need, Right, check
from ..models import ApiToken, Role
from . import access, queries, services

router = Router(tags=["accounts"])


class TokenIn(StrictIn):
    """`scope` holds for all areas, unless `areas` names those that the token opens."""

    name: str
    scope: str = "write"
    areas: dict[str, str] | None = Field(
        None, description=f"Such as `{{'datasets': 'read'}}`; of {', '.join(Area)}, each `read` or `write`"
    )
    days: int | None = services.TOKEN_DAYS  # the token works until then; null: until it is revoked


class TokenOut(Schema):
    id: int
    name: str
    scope: str = Field(description="The highest right of the token in any area")
    areas: dict[str, str] = Field(description="The token cannot use areas that are not named here")
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    last_used_from: str = Field(description="Address; empty before the first use")
    expires_at: datetime | None


class TokenCreated(TokenOut):
    secret: str


class TokenList(Schema):
    items: list[TokenOut]
    next: str | None


class OwnedToken(TokenOut):
    email: str = Field(description="The address of the person to whom the token belongs")

    @staticmethod
    def resolve_email(row: ApiToken) -> str:
        return row.user.email


class OwnedTokenList(Schema):
    items: list[OwnedToken]
    next: str | None


@router.get("/tokens", response=TokenList, summary="Your tokens for this workspace")
def tokens(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.my_tokens(require(request)), cursor, limit, "-id")


@router.get("/tokens/all", response=OwnedTokenList, summary="Everybody's tokens for this workspace")
def all_tokens(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    """Only owners may call this. They can revoke each token by `DELETE /tokens/{token_id}`."""
    return page(queries.all_tokens(require(request, Role.OWNER)), cursor, limit, "-id")


@router.post(
    "/tokens",
    response={201: TokenCreated},
    summary="Create a token; its secret is shown only now",
    openapi_extra=BY_HAND,
)
def create_token(request: HttpRequest, payload: TokenIn) -> Status[object]:
    membership = by_hand(request, "create tokens", "token_by_token")
    token, secret = services.create_token(membership, payload.name, payload.scope, payload.days, payload.areas)
    shown = TokenOut.model_validate(token, from_attributes=True).model_dump()
    return Status(201, {**shown, "secret": secret})


@router.delete("/tokens/{int:token_id}", response={204: None}, summary="Revoke a token")
def revoke_token(request: HttpRequest, token_id: int) -> Status[None]:
    membership = require(request)
    row, key = access.token_write(membership, token_id), getattr(request, "api_token", None)
    if key and row.user_id != membership.user_id:
        check(key.areas, Need(Area.ADMINISTRATION, Right.WRITE))
    services.revoke_token(membership, row)
    return Status(204, None)

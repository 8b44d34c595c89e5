"""The header by which programs say who they are."""


def bearer_token(header: str | None) -> str:
    """The token of an `Authorization: Bearer` header; empty if there is none, or another scheme."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""

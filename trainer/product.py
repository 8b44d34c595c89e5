"""What the product is called, in the one place where programs that talk to others learn it: user agents, the API's document, MCP, second
factors. The package for programs (`client/`) stands alone and has the name once more; a test compares the two."""

NAME = "Touchstone"
SLUG = NAME.lower()
USER_AGENT = f"{NAME}/1"

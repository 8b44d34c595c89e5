"""The product's name, in the one place from which programs that talk to others take it: user agents, the API's document, MCP, second
factors. The package for programs (`client/`) is separate and has the name once more; a test compares the two.
"""

NAME = "Touchstone"
SLUG = NAME.lower()
USER_AGENT = f"{NAME}/1"

"""Names that people give runs and experiments."""

from webapp.core.problems import Invalid

MAX_NAME = 120


def name(text: str, field: str) -> str:
    """Trimmed; raises Invalid at `field` if empty or too long."""
    text = optional_name(text, field)
    if not text:
        raise Invalid("A name is missing.", {field: "give it a name"})
    return text


def optional_name(text: str, field: str) -> str:
    text = text.strip()
    if len(text) > MAX_NAME:
        raise Invalid("The name is too long.", {field: f"at most {MAX_NAME} characters"})
    return text

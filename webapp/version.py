"""The version of this code. CHANGELOG.md says what each one changed."""

VERSION = "0.2.0"

"""The version of this code. CHANGELOG.md lists what each one changed."""

VERSION = "0.2.0"

"""`{{ text|markdown }}`, within a line `{{ text|line }}`, in lists `{{ text|preview }}`."""

from django import template

from webapp.core.text import markdown

register = template.Library()
register.filter("markdown", markdown.markdown)
register.filter("line", markdown.line)
register.filter("preview", markdown.preview)

"""The company sign-ins of this installation, for the sign-in page, whose app is below this one."""

from django import template

from webapp.identity import company

register = template.Library()
register.simple_tag(company.sign_ins, name="company_sign_ins")

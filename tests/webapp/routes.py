"""The URL map."""

from django.urls import URLPattern, URLResolver, get_resolver


def routes(patterns=None, prefix="") -> list[str]:
    """Every route of the product, sorted, with the parameters as Django writes them."""
    found = []
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            found += routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            found.append(route)
    return sorted(set(found))

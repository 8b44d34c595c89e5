"""Facts of an example that other apps know: these apps are above this one, so they register a function here."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..models import Example


@dataclass(frozen=True)
class ExampleFact:
    """One line on the example's page: its title, its link, and a short text."""

    kind: str
    title: str
    url: str
    note: str = ""


Provider = Callable[[Example], Iterable[ExampleFact]]
_providers: list[Provider] = []


def provide(provider: Provider) -> Provider:
    """Registers an app's function; called once, when the app is ready. It may cost a constant number of queries."""
    if provider not in _providers:
        _providers.append(provider)
    return provider


def about(example: Example) -> list[ExampleFact]:
    return [line for provider in _providers for line in provider(example)]

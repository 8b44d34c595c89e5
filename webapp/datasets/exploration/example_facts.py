"""What other apps know of an example: they stand above this one, so they say it here and are asked in turn."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..models import Example


@dataclass(frozen=True)
class ExampleFact:
    """One line on the example's page: what it is, where it leads, and what there is to say in short."""

    kind: str
    title: str
    url: str
    note: str = ""


Provider = Callable[[Example], Iterable[ExampleFact]]
_providers: list[Provider] = []


def provide(provider: Provider) -> Provider:
    """Registers what an app knows; called once, when the app is ready. It may cost a constant number of queries."""
    if provider not in _providers:
        _providers.append(provider)
    return provider


def about(example: Example) -> list[ExampleFact]:
    return [line for provider in _providers for line in provider(example)]

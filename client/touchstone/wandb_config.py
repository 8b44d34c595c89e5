"""The config and the summary of a run that logs as it does to W&B."""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .values import flatten, number

logger = logging.getLogger("touchstone.wandb")
LONGEST = 6_000  # characters of a value of the config
Keep = Callable[..., None]


class Error(Exception):
    """Everything that a call of this module refuses."""


class UsageError(Error):
    """The program asks for something that is not possible."""


class _Named(dict[str, Any]):
    """Keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            self[name] = value

    def as_dict(self) -> dict[str, Any]:
        return dict(self)


class Config(_Named):
    """The run's config. A value that was sent never changes. A value that was set before the first `log` may be set again."""

    def __init__(self, keep: Keep) -> None:
        super().__init__()
        self._keep, self._sent = keep, dict[str, str]()

    def update(self, *given: Any, allow_val_change: bool = False, **named: Any) -> None:
        news = {**(given_config(given[0]) if given else {}), **named}
        changed = [key for key, value in news.items() if key in self and self[key] != value]
        if changed and not allow_val_change:
            raise UsageError(
                f"config.{changed[0]} is already {self[changed[0]]!r}; pass allow_val_change=True to change it."
            )
        super().update(news)

    def setdefaults(self, given: Mapping[str, Any]) -> None:
        for key, value in given_config(given).items():
            self.setdefault(key, value)

    def send(self) -> None:
        """Sends the values that are new since the last time, in pieces that the server accepts."""
        texts = {key: str(value)[:LONGEST] for key, value in flatten(self)}
        changed = [key for key, text in texts.items() if self._sent.get(key, text) != text]
        for key in changed:
            logger.warning(
                "config.%s stays %s: it was already sent, and a config cannot change after that", key, self._sent[key]
            )
        news = [(key, text) for key, text in texts.items() if key not in self._sent]
        for start in range(0, len(news), 100):
            part = [{"key": key[:250], "value": text} for key, text in news[start : start + 100]]
            self._keep("batch", body={"params": part})
        self._sent |= dict(news)


class Summary(_Named):
    """The last value of each metric, and what the program says besides."""

    def __init__(self) -> None:
        super().__init__()
        self._logged = dict[str, float]()

    def logged(self, key: str, value: float) -> None:
        self[key] = self._logged[key] = value

    def said(self) -> tuple[dict[str, float], dict[str, str]]:
        """The values that only the program gave: numbers under keys that it has not logged, and everything else in words."""
        numbers, words = dict[str, float](), dict[str, str]()
        for key, value in flatten(self):
            found = number(value)
            if found is not None and key not in self._logged:
                numbers[key] = found
            elif value is not None and value != self._logged.get(key):
                words[key] = str(value)
        return numbers, words


def given_config(
    given: Any, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None
) -> dict[str, Any]:
    """A config as programs give it: a mapping, pairs, an object with attributes such as parsed arguments, or a file in W&B's layout."""
    if given is None:
        return {}
    if isinstance(given, str | Path):
        found = _of_file(Path(given))
    elif isinstance(given, Mapping):
        found = dict(given)
    elif hasattr(given, "items"):
        found = dict(given.items())
    elif hasattr(given, "__dict__"):
        found = dict(vars(given))
    else:
        found = dict(given)
    left_out, wanted = set(exclude or ()), set(include or found)
    return {str(key): value for key, value in found.items() if key not in left_out and key in wanted}


def _of_file(path: Path) -> dict[str, Any]:
    import yaml

    read = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if not isinstance(read, dict):
        raise UsageError(f"{path} holds no config.")
    return {
        key: value["value"] if isinstance(value, dict) and "value" in value else value
        for key, value in read.items()
        if key not in ("wandb_version", "_wandb")
    }

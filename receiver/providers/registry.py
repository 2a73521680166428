"""The providers that are spoken here, by name."""

from __future__ import annotations

from receiver.providers.demo import DEMO
from receiver.providers.lesson import LESSON
from receiver.providers.provider import Provider
from receiver.providers.standard import STANDARD

_PROVIDERS = {each.name: each for each in (DEMO, LESSON, STANDARD)}


class UnknownProvider(KeyError):  # noqa: N818 (the name says what is wrong)
    """No provider of that name is described here."""

    def __str__(self) -> str:
        return f"unknown provider {self.args[0]!r}: known are {', '.join(names())}"


def provider(name: str) -> Provider:
    """The provider ``name``. Raises UnknownProvider."""
    try:
        return _PROVIDERS[name]
    except KeyError:
        raise UnknownProvider(name) from None


def names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(_PROVIDERS))

"""What is wrong with the configured sources, in sentences without a secret."""

from __future__ import annotations

from collections.abc import Mapping

from receiver.providers.provider import Provider
from receiver.providers.registry import UnknownProvider, provider
from receiver.settings import Source


def spoken_by(source: Source) -> Provider | None:
    """The provider of a source, or None where this version does not know it."""
    try:
        return provider(source.provider)
    except UnknownProvider:
        return None


def faults_of(source: Source) -> list[str]:
    """One sentence for each fault; a source without a usable secret answers 503."""
    spoken = spoken_by(source)
    if spoken is None:
        return [f"its provider {source.provider!r} is not known"]
    faults = list(spoken.faults(source))
    if not spoken.usable_secrets(source):
        faults.insert(0, "no usable secret, so its callbacks are answered 503")
    return faults


def all_faults(sources: Mapping[str, Source]) -> dict[str, list[str]]:
    """The faults of every source that has any."""
    found = {name: faults_of(source) for name, source in sorted(sources.items())}
    return {name: faults for name, faults in found.items() if faults}

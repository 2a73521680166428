"""What is wrong with the configured sources, in sentences without a secret."""

from __future__ import annotations

from collections.abc import Mapping

from receiver.providers.authentication import MacAuthentication
from receiver.providers.provider import Provider
from receiver.providers.registry import UnknownProvider, provider_of
from receiver.settings import Source


def spoken_by(source: Source) -> Provider | None:
    """The provider of a source, or None where this version does not know it."""
    try:
        return provider_of(source)
    except UnknownProvider:
        return None


def faults_of(source: Source) -> list[str]:
    """One sentence for each fault; a source without a usable secret answers 503."""
    spoken = spoken_by(source)
    if spoken is None:
        return [f"its provider {source.provider!r} is not known"]
    faults = list(spoken.faults(source))
    if not spoken.is_ready(source):
        faults.insert(0, "no usable secret, so its callbacks are answered 503")
    return faults


def timestamp_of(source: Source) -> str:
    """Whether the source's timestamp is required, optional, or not checked by its protocol."""
    spoken = spoken_by(source)
    if spoken is None or not isinstance(spoken.authentication, MacAuthentication):
        return "not checked here"
    if spoken.authentication.schemes[0].timestamp is None:
        return "not checked here"
    return source.timestamp or spoken.authentication.timestamp


def window_of(source: Source) -> str | None:
    """The window of the source's timestamp in words; None where the scheme states none."""
    spoken = spoken_by(source)
    if spoken is None or not isinstance(spoken.authentication, MacAuthentication):
        return None
    stamp = spoken.authentication.schemes[0].timestamp
    if stamp is None:
        return None
    own = int(source.tolerance.total_seconds()) if source.tolerance else None
    past, future = (side if side is None else own or side for side in (stamp.past, stamp.future))
    if past == future:
        return f"{_side(past)} to both sides"
    return f"{_side(past)} in the past, {_side(future)} in the future"


def _side(seconds: int | None) -> str:
    return "without limit" if seconds is None else f"{seconds} s"


def all_faults(sources: Mapping[str, Source]) -> dict[str, list[str]]:
    """The faults of every source that has any."""
    found = {name: faults_of(source) for name, source in sorted(sources.items())}
    return {name: faults for name, faults in found.items() if faults}

"""How the documents of payment APIs are found and read: pieces that their descriptions share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.paths import TRANSACTION, Computed, Flaws, Path
from receiver.providers.payment_event import Kind


def running_total(total: Path, where: Where) -> BodyMap:
    """Refunds as the total that a payment carries: of none (absent or zero) nothing is said."""

    def has_any(value: object) -> str | None:
        text = str(value if value is not None else 0)
        return None if not text.strip("0.") else "refunds"

    at = replace(where, amount=None, effect_id=None, refund_total=total)
    return BodyMap(
        type=Computed("refunds", (total,), has_any),
        meanings={"refunds": Meaning(Kind.REFUND_TOTAL, at)},
        otherwise=Where(),
    )


def by_status(
    status: Path, where: Where, kinds: Mapping[str, Kind], effect: Path | None = TRANSACTION
) -> BodyMap:
    """One meaning a status; statuses (pending, failed) have no effect, the others that at ``effect``."""
    no_effect = {Kind.PENDING, Kind.FAILED}
    return BodyMap(
        type=status,
        meanings={
            name: Meaning(kind, replace(where, effect_id=None if kind in no_effect else effect))
            for name, kind in kinds.items()
        },
        otherwise=Where(),
        blanks_absent=True,
    )


def documents(document: dict[str, Any], at: Path, many: bool) -> list[dict[str, Any]] | None:
    """The objects at a place: none where an optional list is absent; None where it is something else."""
    if not at and not many:
        return [document]
    flaws = Flaws(document)
    node = flaws.read("document", at, lambda value: value)
    if flaws.error is not None:
        return None
    if many:
        listed = [] if node is None else node
        ours = isinstance(listed, list) and all(isinstance(each, dict) for each in listed)
        return listed if ours else None
    return [node] if isinstance(node, dict) else None


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with each ``{name}`` replaced, an unknown one by nothing."""
    return re.sub(r"\{([a-z_:]+)\}", lambda match: values.get(match[1], ""), template)

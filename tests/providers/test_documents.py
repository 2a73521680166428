"""The pages of docs/providers: one for each real provider, whose examples are sources without a fault."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from receiver.providers.registry import provider
from receiver.settings import Secret, Source
from receiver.sources import SOURCE_KEYS

DOCS = Path(__file__).parent.parent.parent / "docs" / "providers"
CASES = Path(__file__).parent.parent / "cases" / "signatures"


def _secret_of(file, scheme):
    """A secret in the form that a provider's own cases use."""
    cases = json.loads((CASES / file).read_text(encoding="utf-8"))["cases"]
    return next(case["secrets"][0] for case in cases if case["scheme"] == scheme)


KEYS = {
    "adyen": "ab" * 32,
    "adyen_banking": "ab" * 32,
    "braintree": _secret_of("braintree.json", "braintree"),
    "midtrans_snapbi": _secret_of("midtrans.json", "midtrans-snapbi"),
}


def examples():
    """Every source that stands in a page."""
    for page in sorted(DOCS.glob("*.md")):
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for name, table in tomllib.loads(block).get("sources", {}).items():
                yield pytest.param(table, id=f"{page.stem}-{name}")


@pytest.mark.parametrize("table", list(examples()))
def test_an_example_of_a_page_has_no_fault(table):
    """What a page says to write down is what the provider takes."""
    name = table["provider"]
    secrets = tuple(Secret(reference, KEYS.get(name, "secret")) for reference in table.get("secrets", ()))
    source = Source("acme", name, secrets, options=table.get("options", {}))

    assert set(table) <= SOURCE_KEYS
    if name not in ("demo", "lesson", "standard"):
        assert provider(name).faults(source) == []

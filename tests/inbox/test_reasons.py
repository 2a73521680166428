"""Every reason code that the code can give has words for people."""

from __future__ import annotations

import re
from pathlib import Path

import receiver
from receiver.inbox.reasons import REJECTED, help_for, rejection_means
from receiver.inbox.table import LATE_ENDS

ROOT = Path(receiver.__file__).parent


def test_every_refusal_has_words() -> None:
    """The codes of Refuse, Park and Ignore in the rules, and the queue's own."""
    rules = "".join(path.read_text() for path in (ROOT / "orders").glob("*.py"))
    codes = set(re.findall(r'\b(?:Refuse|Park|Ignore)\(\s*"(\w+)"', rules))
    assert {"amount", "order_unknown", "not_ours"} <= codes
    codes |= {"worker_lost", "repeated_field", "unreadable_amount", "refund_total", *LATE_ENDS}
    assert [code for code in sorted(codes) if help_for(code) is None] == []


def test_every_rejection_has_words() -> None:
    """The codes of the signature engine and of the intake's door."""
    sources = [*(ROOT / "signature").glob("*.py"), ROOT / "web" / "webhooks.py"]
    text = "".join(path.read_text() for path in sources)
    codes = set(re.findall(r'Unverified\(\s*"(\w+)"', text)) | set(re.findall(r'Refused\(\d+, "(\w+)"', text))
    assert "signature" in codes
    assert sorted(codes - set(REJECTED)) == []


def test_an_unknown_code_is_shown_as_it_is() -> None:
    """A page never fails for want of words."""
    assert help_for("something_new") is None
    assert help_for(None) is None
    assert rejection_means("something_new") == "something new"

"""Verification of a 1 KiB body, each provider beside `demo`: `python -m bench.verify [--rounds N]`.

Each is signed by its own signer; interleaved rounds, medians of CPU time, which neighbours disturb least.
The budget, for HMAC schemes: at most 60 us more than `demo`'s.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

from werkzeug.datastructures import Headers

from bench import ground as grounds
from bench.ground import table
from receiver.providers.authentication import Verified
from receiver.providers.registry import provider_of
from receiver.settings import Secret, Source

NOW = 1_790_000_000
BUDGET_US = 60.0
CALLS = 200

SECRETS = {
    "adyen": "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    "adyen_banking": "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    "braintree": "public_key|private_key",
    "standard": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
}
OPTIONS: dict[str, dict[str, object]] = {
    "square": {"notification_url": "https://inbox.example/webhooks/square"},
    "hmac": {"header": "X-Signature", "id": "id", "type": "type"},
}
NAMES = (
    "demo", "lesson", "standard", "stripe", "razorpay", "paystack", "square", "paddle", "mollie",
    "gocardless", "checkout_com", "shopify", "github", "lemonsqueezy", "coinbase_commerce", "flutterwave",
    "adyen_banking", "adyen", "braintree", "hmac",
)  # fmt: skip


def body_for(name: str) -> bytes:
    """About 1 KiB in the provider's envelope."""
    filler = "n" * 900
    if name == "adyen":
        item = {
            "pspReference": "P1", "merchantAccountCode": "A", "merchantReference": "o_1",
            "amount": {"value": 2500, "currency": "EUR"}, "eventCode": "AUTHORISATION", "success": "true",
            "reason": filler, "additionalData": {"hmacSignature": ""},
        }  # fmt: skip
        return json.dumps({"notificationItems": [{"NotificationRequestItem": item}]}).encode()
    if name == "braintree":
        return f"<notification><kind>check</kind><filler>{filler}</filler></notification>".encode()
    return json.dumps({"id": "evt_1", "type": "x", "event": {}, "filler": filler}).encode()


def act_for(name: str) -> Callable[[], object]:
    """One verification."""
    secret = SECRETS.get(name, "a secret of the bench")
    source = Source(name, name, (Secret("env:S", secret),), options=OPTIONS.get(name, {}))
    spoken = provider_of(source)
    request = spoken.sign_request(secret, body_for(name), NOW, "evt_1", source.options)
    headers = Headers(request.headers)
    verdict = spoken.verify(source, headers, request.body, NOW)
    if not isinstance(verdict, Verified):
        raise SystemExit(f"{name}: {verdict}")
    return lambda: spoken.verify(source, headers, request.body, NOW)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    acts = {name: act_for(name) for name in NAMES}
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(args.rounds + 1):
        for name, act in acts.items():
            started = time.thread_time()
            for _ in range(CALLS):
                act()
            taken[name].append((time.thread_time() - started) / CALLS * 1e6)
    medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
    print(f"\n{grounds.machine()}\n")
    rows = []
    for name, median in medians.items():
        more = median - medians["demo"]
        ratio = median / medians["demo"]
        rows.append(
            [name, f"{median:.1f}", f"{ratio:.2f}", f"{more:+.1f}", "" if more <= BUDGET_US else "over"]
        )
    print(
        table(
            ["provider", "us a verification", "ratio", "more than demo", f"budget {BUDGET_US:.0f} us"], rows
        )
    )


if __name__ == "__main__":
    main()

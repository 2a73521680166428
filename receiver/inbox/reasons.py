"""What each reason code means to an operator: what it says, what to check, what replay would do.

Codes come from `orders/decide`, from the queue's verbs and from the intake's refusals. A page, a
command and a document all take their words from here; a code that is missing is shown as it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Help:
    """One sentence each; empty where there is nothing to say."""

    means: str
    check: str = ""
    replay: str = ""


REFUSED: dict[str, Help] = {
    "amount": Help(
        "The event's amount is not the order's.",
        "Compare both amounts with the provider's own page. If the order was registered wrongly, correct "
        "it on its page.",
        "The same again, until the order's amount is corrected; then it is applied. Where less was paid and "
        "that is right, an admin may release the event: it then counts as a part.",
    ),
    "currency": Help(
        "The event's currency is not the order's.",
        "Was the order registered in the right currency? If not, correct it on its page. A provider may also "
        "settle in another one than asked.",
        "The same again, until the order's currency is corrected; then it is applied.",
    ),
    "refund_total": Help(
        "The event reports a running total of refunds without the total that its kind must carry.",
        "Look at the payload, and at the refunds on the provider's own page.",
        "The same again: the facts of a stored event do not change.",
    ),
    "account": Help(
        "The event belongs to another account of the provider than the one this source states.",
        "Compare the account in the payload with `account` in sources.toml; was the URL given to the "
        "wrong account?",
        "The same again, until the source's account is set right. An admin may release the event as it is.",
    ),
    "mode": Help(
        "A test event reached a live source, or a live event a test source.",
        "Compare `live` in the payload with `live` in sources.toml.",
        "The same again, until the source's mode is set right. An admin may release the event as it is.",
    ),
    "source": Help(
        "The order does not allow this source to pay it.",
        "Look at the order's sources; correct them if this source may pay it.",
        "The same again, until the order's sources are corrected; then it is applied.",
    ),
    "transaction": Help(
        "The transaction is missing from the event, or it belongs to another order.",
        "Search for the transaction under Events: which order does it pay?",
        "The same again: a transaction belongs to one order.",
    ),
    "effect": Help(
        "A partial capture, refund or dispute came without the provider's own id of it, so a repeat could "
        "not be told from a second one.",
        "Look at the payload; the provider's event should name the capture, refund or dispute.",
        "The same again: the facts of a stored event do not change.",
    ),
    "effect_changed": Help(
        "This capture, refund or dispute is in the ledger already, with another amount or for another order.",
        "Compare the ledger of the order with the provider's own page.",
        "The same again: the ledger is never overwritten.",
    ),
    "second_payment": Help(
        "The order is paid by another transaction already: this money was taken and must be given back.",
        "Refund this transaction at the provider, or refund the first one in full.",
        "The same again, unless the paying transaction has been refunded in full since.",
    ),
    "order_cancelled": Help(
        "Money arrived for a cancelled order: it must be given back, or the order made anew.",
        "Refund this transaction at the provider.",
        "The same again while the order is cancelled. An admin may release the event: the order takes it.",
    ),
    "refund_exceeds_captured": Help(
        "More was refunded than captured, and nothing explained it until the deadline.",
        "Compare captures and refunds with the provider's own page: a capture may be missing here.",
        "It is applied if a capture has arrived since; else it waits again.",
    ),
    "order_unknown": Help(
        "No order of this reference is registered, so the event waits for one, until its deadline.",
        "Register the order; the event is then applied at once.",
        "It waits again for the order, for three days.",
    ),
    "transaction_unknown": Help(
        "The event carries no order, and its transaction is not known yet, so it waits for it.",
        "An earlier event of this transaction has not come, or the payment is not ours.",
        "It waits again for the transaction; at the deadline it is ignored.",
    ),
    "before_capture": Help(
        "A refund or dispute came before the capture that it is about, so it waits for it.",
        "Was the capture refused? Look at the order's events.",
        "It waits again for the capture, for three days.",
    ),
    "repeated_field": Help(
        "The body holds a field twice that decides what the event does, so it could mean two things.",
        "Look at the raw payload and ask the provider.",
        "The same again: the facts of a stored event do not change.",
    ),
    "unconfirmed": Help(
        "This provider's message alone proves too little, and it could not be read back from the provider's "
        "API.",
        "Does the source have its API credentials in sources.toml (`receiver check` says)? Look at the "
        "payment on the provider's own page.",
        "It is read back, if the source has the credentials now; else the same again.",
    ),
    "api_unavailable": Help(
        "The provider's API gave no usable answer, so the event could not be read back and waits.",
        "The detail says what happened: wrong credentials, a limit, or an outage of the provider.",
        "It is asked again.",
    ),
    "api_behind": Help(
        "The message says that money moved, and the provider's API does not know it yet.",
        "Nothing at first: some APIs lag. After four looks the API's word counts.",
        "It is asked again.",
    ),
    "not_at_provider": Help(
        "The provider's API does not know the payment that the message is about.",
        "Is the message forged, or does the source ask with the key of another account or mode?",
        "It is asked again.",
    ),
    "worker_lost": Help(
        "Three workers vanished while they worked on this event.",
        "Look at the workers' logs at the times of the attempts: memory, disk, a crash?",
        "It is tried again, alone, so that it takes no other event along.",
    ),
    "timed_out": Help(
        "The attempt took longer than BATCH_LIMIT_SECONDS and was ended.",
        "Is the database slow, or an order locked for long? Look at the workers' logs at that time.",
        "It is tried again.",
    ),
    "order_locked": Help(
        "Somebody else held the order locked, so the event was put off for five seconds, uncounted.",
        "Look for a long transaction in the database.",
    ),
    "source_unknown": Help(
        "The worker has no settings for the event's source, so account and mode cannot be compared.",
        "Does the worker read the same sources.toml (RECEIVER_SOURCES) as the web processes?",
        "It waits again, until the source is configured.",
    ),
    "internal_error": Help(
        "A fault of this service, not of the event.",
        "Look at the workers' logs at the times of the attempts.",
        "It is tried again.",
    ),
    "no_money_meaning": Help("The event says nothing about money, so it changes no order."),
    "not_ours": Help(
        "The payment names no order of ours, and its transaction is not known here.",
        "Nothing, unless you expected this payment: then the provider was not given the order's reference.",
        "The same again, unless the transaction has become known since.",
    ),
    "older_than_known": Help(
        "A later status of the same transaction, or its money, was known already, so nothing changed.",
    ),
    "surplus_returned": Help(
        "A refund or dispute of money that was never booked on the order (a second payment), so the order "
        "stands as it was.",
    ),
}

REJECTED: dict[str, str] = {
    "signature": "no secret of ours gives this signature: wrong secret, or changed bytes",
    "missing_signature": "no signature header",
    "malformed_signature": "the signature header cannot be read",
    "signature_version": "no signature of a version that we accept",
    "too_many_signatures": "more signatures than any provider sends",
    "wrong_encoding": "the signature is right in another spelling (hex, base64, case) than the provider's",
    "missing_timestamp": "no timestamp header",
    "malformed_timestamp": "the timestamp is not whole seconds in ASCII digits",
    "timestamp_too_old": "older than the window: a late replay, or a clock that is behind",
    "timestamp_in_future": "ahead of the window: a clock that is wrong, or milliseconds for seconds",
    "unusable_secret": "the configured secret cannot be used for this provider",
    "no_secret": "the source has no usable secret, so its callbacks are answered 503",
    "unknown_source": "nobody of this name is configured",
    "unknown_provider": "the source names a provider that this version does not know",
    "missing_id": "authentic, but without an event id",
    "invalid_id": "authentic, but its event id is unusable",
    "repeated_id": "authentic, but its event id stands twice",
    "missing_header": "a header that is part of what is signed is not there",
    "missing_setting": "an option of the source that is part of what is signed is not set",
    "ambiguous_field": "a signed field stands more than once, so it could mean two things",
    "unreadable_body": "the body that holds the signature cannot be read",
    "malformed_id": "the signed id is unusable",
    "not_utf8": "authentic, but not UTF-8",
    "not_json": "authentic, but not JSON",
    "not_an_object": "authentic, but no JSON object",
    "too_deep": "authentic, but nested too deeply",
    "number_too_long": "authentic, but it holds a number of too many digits",
    "exponent_too_large": "authentic, but it holds a number of too large an exponent",
    "not_finite": "authentic, but it holds NaN or Infinity",
    "certificate_url": "the certificate's URL is not one of the provider's own host over https",
    "certificate_unknown": "the provider's host knows no such certificate",
    "certificate_untrusted": "the certificate leads to no root that is trusted for this provider",
    "contradicts_itself": "the body's own figures contradict each other: it may be forged",
    "foreign_topic": "rightly signed for a topic that this source does not list",
    "unknown_type": "a kind of message that the protocol does not know",
    "missing_field": "a field that is part of what is signed is not there",
    "not_xml": "authentic, but not XML",
    "not_base64": "authentic, but not base64",
    "certificate_unavailable": "the provider's certificate could not be fetched, so it was answered 503",
    "no_items": "authentic, but its list of events is empty",
    "not_a_form": "authentic, but no form",
    "too_many_fields": "authentic, but a form of more fields than any provider sends",
    "unsigned_fields": "authentic, but fields that decide are not covered by its signature",
    "repeated_field": "authentic, but a field that decides stands more than once",
    "no_events": "authentic, but it holds no event",
    "too_large": "larger than MAX_BODY_BYTES",
    "content_encoding": "compressed bodies are not accepted",
    "content_length": "the announced length is no number",
    "short_body": "fewer bytes than announced",
    "broken_body": "the body broke off",
    "slow_body": "the body took too long",
}

OUTCOMES: dict[str, str] = {
    "applied": "It moved the order.",
    "repeat": "The same effect was applied before: nothing changed.",
    "stale": "A later status of the same transaction was known already: nothing changed.",
    "ignored": "It changes no order.",
}


def help_for(code: str | None) -> Help | None:
    """The words for a reason code; None without a code."""
    if not code:
        return None
    if code in REFUSED:
        return REFUSED[code]
    if code.startswith("error:"):
        return REFUSED["internal_error"]
    if code.startswith("unreadable_"):
        fact = code.removeprefix("unreadable_").replace("_", " ")
        return Help(
            f"The event's {fact} could not be read, so it can never move an order.",
            "Look at the payload: what did the provider send there?",
            "The same again, unless this version reads what an earlier one could not.",
        )
    return None


def rejection_means(code: str) -> str:
    """What a rejection's reason says; the code itself where there are no words for it."""
    return REJECTED.get(code, code.replace("_", " "))

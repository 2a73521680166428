"""The bodies of the real providers' payment events, in the shapes of their documentation, kept short.

One writer a provider; where one type covers several outcomes, the event's name here has the outcome behind
a slash. Signing is the provider's own description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from receiver.providers import adyen, checkout_com, stripe
from receiver.providers.amounts import MAJOR_NUMBER, MAJOR_TEXT, MINOR_TEXT
from receiver.providers.payment_event import Kind
from receiver.simulator.dialect import Body, Dialect, Facts, amount_of, as_json, iso, money_of

K = Kind
_DISPUTES = {K.DISPUTE_OPENED, K.DISPUTE_WON, K.DISPUTE_LOST}


def json_dialect(types: Mapping[Kind, str], body: Callable[[Facts, str], Body]) -> Dialect:
    """A dialect whose bodies are JSON; the writer is given the event's name too."""
    return Dialect(types, lambda facts: as_json(body(facts, types[facts.kind])))


def _number(text: str) -> int:
    """A number that stands for a text, where the provider's ids are numbers."""
    return int(text) if text.isdigit() else int.from_bytes(text.encode()[-7:], "big")


def stripe_body(facts: Facts, name: str) -> Body:
    """Stripe."""
    event_type, _, status = name.partition("/")
    thing: Body = {"id": facts.transaction_id, "object": "payment_intent"}
    if facts.kind in (K.REFUNDED, K.REFUND_FAILED, *_DISPUTES):
        thing = {"id": f"re_{facts.effect_id}", "payment_intent": facts.transaction_id, "status": status}
    amount = amount_of(stripe.UNIT, facts)
    thing |= {"amount": amount, "amount_received": amount, "currency": facts.currency.lower()}
    thing["metadata"] = {"order_id": facts.order_reference}
    event: Body = {"id": facts.event_id, "object": "event", "type": event_type, "data": {"object": thing}}
    if facts.account is not None:
        event["account"] = facts.account
    return {**event, "created": int(facts.made_at.timestamp()), "livemode": bool(facts.live)}


def adyen_body(facts: Facts, name: str) -> Body:
    """Adyen."""
    code, _, success = name.partition("/")
    change = facts.kind in (K.VOIDED, K.CAPTURED, K.REFUNDED, K.REFUND_FAILED, *_DISPUTES)
    dispute = f"dp_{facts.effect_id}" if facts.kind in _DISPUTES else f"psp_{facts.effect_id}"
    item: Body = {
        "pspReference": dispute if change else facts.transaction_id,
        "merchantAccountCode": facts.account or "SimulatedECOM",
        "merchantReference": facts.order_reference,
        "amount": {"value": amount_of(adyen.UNIT, facts), "currency": facts.currency},
        "eventCode": code,
        "success": success or "true",
        "eventDate": iso(facts.made_at),
        "additionalData": {},
    }
    if change:
        item["originalReference"] = facts.transaction_id
    return {"live": "false", "notificationItems": [{"NotificationRequestItem": item}]}


def square_body(facts: Facts, name: str) -> Body:
    """Square."""
    event_type, _, status = name.partition("/")
    noun = event_type.partition(".")[0]
    money = {"amount": facts.amount_minor, "currency": facts.currency}
    thing: Body = {"id": facts.transaction_id, "status": status, "amount_money": money}
    if noun == "payment":
        thing |= {"reference_id": facts.order_reference, "version": facts.sequence}
    elif noun == "refund":
        thing |= {"id": f"re_{facts.effect_id}", "payment_id": facts.transaction_id}
    else:
        paid = {"payment_id": facts.transaction_id}
        thing |= {"id": f"dp_{facts.effect_id}", "state": status, "disputed_payment": paid}
    return {
        "merchant_id": facts.account or "SIMULATED",
        "type": event_type,
        "event_id": facts.event_id,
        "created_at": iso(facts.made_at),
        "data": {"type": noun, "id": thing["id"], "object": {noun: thing}},
    }


def razorpay_body(facts: Facts, name: str) -> Body:
    """Razorpay."""
    money = {"amount": facts.amount_minor, "currency": facts.currency}
    payment = {"id": facts.transaction_id, **money, "notes": {"merchant_order": facts.order_reference}}
    payload: Body = {"payment": {"entity": payment}}
    for noun, prefix in (("refund", "rfnd_"), ("dispute", "disp_")):
        if noun in name:
            entity = {"id": prefix + facts.effect_id, "payment_id": facts.transaction_id, **money}
            payload[noun] = {"entity": entity}
    return {
        "entity": "event",
        "account_id": facts.account or "acc_simulated",
        "event": name,
        "contains": list(payload),
        "payload": payload,
        "created_at": int(facts.made_at.timestamp()),
    }


def paystack_body(facts: Facts, name: str) -> Body:
    """Paystack."""
    event, _, resolution = name.partition("/")
    metadata = {"metadata": {"order_id": facts.order_reference}}
    data: Body = {"domain": "live" if facts.live else "test", "currency": facts.currency}
    if event.startswith("refund"):
        data |= {"transaction_reference": facts.transaction_id, "refund_reference": f"re_{facts.effect_id}"}
        data["amount"] = str(facts.amount_minor)
    elif "dispute" in event:
        data |= {"id": _number(facts.effect_id), "refund_amount": facts.amount_minor}
        data |= {
            "transaction": {"reference": facts.transaction_id, **metadata},
            "resolution": resolution or None,
        }
    else:
        data |= {"id": _number(facts.transaction_id), "reference": facts.transaction_id, **metadata}
        data |= {"amount": facts.amount_minor, "paid_at": iso(facts.made_at)}
    return {"event": event, "data": data}


def paddle_body(facts: Facts, name: str) -> Body:
    """Paddle."""
    event_type, _, action = name.partition("/")
    total = amount_of(MINOR_TEXT, facts)
    data: Body = {"id": facts.transaction_id, "currency_code": facts.currency}
    if action:
        what, status = action.split("-")
        data |= {"id": f"adj_{facts.effect_id}_{status}", "transaction_id": facts.transaction_id}
        data |= {"action": what, "status": status, "totals": {"total": total}}
        if what == "refund":
            data["id"] = f"adj_{facts.effect_id}"
    else:
        data |= {"custom_data": {"order_id": facts.order_reference}}
        data |= {"details": {"totals": {"grand_total": total}}}
    event = {"event_id": facts.event_id, "event_type": event_type, "occurred_at": iso(facts.made_at)}
    return {**event, "data": data}


def mollie_id(facts: Facts) -> str:
    """The payment's id in Mollie's shape."""
    plain = re.sub(r"[^A-Za-z0-9]", "", facts.transaction_id)
    return facts.transaction_id if re.fullmatch(r"tr_[A-Za-z0-9]+", facts.transaction_id) else f"tr_{plain}"


def mollie_body(facts: Facts, name: str) -> Body:
    """Mollie."""
    mode = "live" if facts.live else "test"
    entity = {"id": mollie_id(facts), "mode": mode, "description": facts.order_reference}
    return {
        "resource": "event",
        "id": facts.event_id,
        "type": name,
        "entityId": mollie_id(facts),
        "createdAt": iso(facts.made_at),
        "_embedded": {"entity": {**entity, "amount": money_of(facts)}},
    }


def gocardless_body(facts: Facts, name: str) -> Body:
    """Gocardless."""
    resource, action = name.split(".")
    links = {"payment": facts.transaction_id, "organisation": facts.account or "OR_SIMULATED"}
    event: Body = {"id": facts.event_id, "created_at": iso(facts.made_at), "resource_type": resource}
    event |= {"action": action, "links": links}
    if resource == "refunds":
        links["refund"] = f"RF{facts.effect_id}"
    else:
        event["resource_metadata"] = {"order_id": facts.order_reference}
    return {"events": [event], "meta": {"webhook_id": f"WB{facts.event_id}"}}


def checkout_body(facts: Facts, name: str) -> Body:
    """Checkout.com."""
    data: Body = {"id": facts.transaction_id, "reference": facts.order_reference}
    data |= {"amount": amount_of(checkout_com.UNIT, facts), "currency": facts.currency}
    if facts.kind in _DISPUTES:
        data |= {"id": f"dsp_{facts.effect_id}", "payment_id": facts.transaction_id}
        data["payment_reference"] = data.pop("reference")
    else:
        data["action_id"] = f"act_{facts.effect_id}"
    return {"id": facts.event_id, "type": name, "created_on": iso(facts.made_at), "data": data}


def shopify_body(facts: Facts, name: str) -> Body:
    """Shopify."""
    status = name.partition(".")[2]
    number, at = _number(facts.transaction_id), iso(facts.made_at)
    amount = amount_of(MAJOR_TEXT, facts)
    if facts.kind is K.REFUNDED:
        given = {"kind": "refund", "status": "success", "amount": amount, "currency": facts.currency}
        effect = _number(facts.effect_id)
        refund = {"id": effect, "admin_graphql_api_id": f"gid://shopify/Refund/{effect}", "order_id": number}
        return {**refund, "created_at": at, "transactions": [given]}
    order = {"id": number, "admin_graphql_api_id": f"gid://shopify/Order/{number}", "updated_at": at}
    order |= {"name": facts.order_reference, "financial_status": status, "test": not facts.live}
    return {**order, "total_price": amount, "currency": facts.currency}


def github_body(facts: Facts, name: str) -> Body:
    """Github."""
    sponsorship = {"node_id": facts.transaction_id, "sponsorable": {"login": facts.order_reference}}
    return {
        "action": name.partition(".")[2],
        "sponsorship": {**sponsorship, "created_at": iso(facts.made_at)},
    }


def lemonsqueezy_body(facts: Facts, name: str) -> Body:
    """Lemonsqueezy."""
    event, _, status = name.partition("/")
    money = {"total": facts.amount_minor, "currency": facts.currency, "status": status}
    attributes: Body = {**money, "updated_at": iso(facts.made_at), "store_id": facts.account or "1"}
    if facts.kind is K.REFUNDED:
        attributes["refunded_amount"] = facts.amount_minor
    custom = {"order_ref": facts.order_reference}
    return {
        "meta": {"event_name": event, "custom_data": custom, "test_mode": not facts.live},
        "data": {"type": "orders", "id": facts.transaction_id, "attributes": attributes},
    }


def coinbase_body(facts: Facts, name: str) -> Body:
    """Coinbase Commerce."""
    local = {"amount": amount_of(MAJOR_TEXT, facts), "currency": facts.currency}
    charge = {"id": facts.transaction_id, "metadata": {"order_id": facts.order_reference}}
    event = {"id": facts.event_id, "type": name, "created_at": iso(facts.made_at)}
    data = {**charge, "pricing": {"local": local}}
    return {"id": f"dlv_{facts.event_id}", "attempt_number": 1, "event": {**event, "data": data}}


def flutterwave_body(facts: Facts, name: str) -> Body:
    """Flutterwave."""
    event, _, status = name.partition("/")
    data: Body = {"id": facts.transaction_id, "amount": amount_of(MAJOR_NUMBER, facts)}
    data |= {"currency": facts.currency, "status": status, "reference": facts.order_reference}
    if facts.kind in (K.REFUNDED, K.REFUND_FAILED):
        data |= {"id": f"rfd_{facts.effect_id}", "charge_id": facts.transaction_id}
    at = int(facts.made_at.timestamp() * 1000)
    return {"webhook_id": facts.event_id, "timestamp": at, "type": event, "data": data}


def flutterwave_v3_body(facts: Facts, name: str) -> Body:
    """Flutterwave v3."""
    event, _, status = name.partition("/")
    data = {"id": _number(facts.transaction_id), "tx_ref": facts.order_reference, "status": status}
    data |= {"amount": amount_of(MAJOR_NUMBER, facts), "currency": facts.currency}
    return {"event": event, "data": {**data, "created_at": iso(facts.made_at)}}

"""Plays a payment provider against a running service, over HTTP alone, and says what became of it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import requests

from receiver.simulator.order_api import TIMEOUT_SECONDS, OrderApi, TriggerError
from receiver.simulator.scenarios import Plan, PlannedPost
from receiver.simulator.sender import Sender

THREADS = 8
WAIT_SECONDS = 30.0
"""How long after the last post the run waits for its events to end or park."""

LOOK_EVERY_SECONDS = 0.25
DETAILS_MAX = 10
ENDED = frozenset({"processed", "failed", "expired"})

Progress = Callable[[str, int, int], None]
"""Told ``(what, done, all)`` as the run goes on."""


@dataclass(slots=True)
class Report:
    """What became of a run. ``unexpected``: posts that were not answered as the scenario expects."""

    posts: int = 0
    seconds: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    unexpected_count: int = 0
    events: Counter[str] = field(default_factory=Counter)
    orders: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "posts": self.posts,
            "seconds": round(self.seconds, 3),
            "answers": dict(self.answers),
            "unexpected": self.unexpected_count,
            "events": dict(self.events),
            "orders": dict(self.orders),
            "details": self.details,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class _Stored:
    """A stored event: the receipt, unless the provider wants to hear something else, and its id."""

    receipt: str | None
    event_id: str | None


class _Pace:
    """At most ``rate`` posts a second over all threads; None: as fast as they go."""

    def __init__(self, rate: float | None) -> None:
        self._step = 1 / rate if rate else 0.0
        self._next = time.monotonic()
        self._lock = threading.Lock()

    def wait(self) -> None:
        if not self._step:
            return
        with self._lock:
            due = max(self._next, time.monotonic())
            self._next = due + self._step
        time.sleep(max(0.0, due - time.monotonic()))


def trigger(
    api: OrderApi,
    sender: Sender,
    plan: Plan,
    *,
    rate: float | None = None,
    wait_seconds: float = WAIT_SECONDS,
    progress: Progress = lambda _what, _done, _all: None,
) -> Report:
    """Register the plan's orders, post its events, wait for their ends. Raises TriggerError."""
    report = Report(posts=sum(not post.lost for post in plan.posts), notes=plan.notes)
    with ThreadPoolExecutor(THREADS) as pool:
        registered = pool.map(lambda o: api.register(o.reference, o.amount_minor, o.currency), plan.orders)
        for done, _ in enumerate(registered, start=1):
            progress("orders registered", done, len(plan.orders))
        begun = time.monotonic()
        receipts = _post_all(api, sender, plan, pool, report, _Pace(rate), progress)
        report.seconds = time.monotonic() - begun
        _watch(api, plan, pool, report, receipts, wait_seconds, progress)
    return report


def _post_all(
    api: OrderApi,
    sender: Sender,
    plan: Plan,
    pool: ThreadPoolExecutor,
    report: Report,
    pace: _Pace,
    progress: Progress,
) -> dict[str, _Stored]:
    """Post every chain; returns the receipts of stored events by their id."""
    receipts: dict[str, _Stored] = {}
    lock = threading.Lock()

    def send(chain: Iterable[PlannedPost]) -> None:
        for post in chain:
            if post.lost:
                continue
            pace.wait()
            answered, receipt = _post(api, sender, post)
            with lock:
                report.answers[answered] += 1
                if answered != str(post.expect):
                    report.unexpected_count += 1
                    if len(report.unexpected) < DETAILS_MAX:
                        report.unexpected.append(
                            f"{post.event_type} {post.event_id}: answered {answered}, expected {post.expect}"
                        )
                if receipt is not None:
                    receipts[post.event_id] = receipt
                progress("events posted", report.answers.total(), report.posts)

    for _ in pool.map(send, plan.chains):
        pass
    return receipts


def _post(api: OrderApi, sender: Sender, post: PlannedPost) -> tuple[str, _Stored | None]:
    """The status of the answer as text (or why there was none) and by what a stored event is found."""
    headers, body = sender.headers_and_body(post)
    try:
        answer = api.http.post(
            f"{api.url}/webhooks/{sender.source.name}",
            data=body,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )
    except requests.RequestException as error:
        return f"no answer ({type(error).__name__})", None
    try:
        receipt = answer.json().get("receipt") if sender.stores_with(answer.status_code) else None
    except (requests.JSONDecodeError, AttributeError):
        receipt = None
    stored = sender.stores_with(answer.status_code)
    return str(answer.status_code), _Stored(receipt, sender.stored_id(headers, body)) if stored else None


def _watch(
    api: OrderApi,
    plan: Plan,
    pool: ThreadPoolExecutor,
    report: Report,
    receipts: dict[str, _Stored],
    wait_seconds: float,
    progress: Progress,
) -> None:
    """Look at the orders until each stored event ended or is parked, or the time is over."""
    wanted = _wanted(plan, receipts)
    events: dict[str, dict[str, Any]] = {}
    deadline = time.monotonic() + wait_seconds
    waiting = dict(wanted)

    def look(reference: str) -> tuple[str, dict[str, dict[str, Any]]]:
        return reference, _events_of(api, _order(api, reference), wanted[reference], receipts)

    while waiting:
        for reference, found in pool.map(look, list(waiting)):
            events.update(found)
            if all(_settled(found.get(event_id)) for event_id in wanted[reference]):
                del waiting[reference]
        progress("orders settled", len(wanted) - len(waiting), len(wanted))
        if time.monotonic() > deadline:
            break
        if waiting:
            time.sleep(LOOK_EVERY_SECONDS)
    # The service reads an order before its events: only a look after the last event's end is sure.
    states = pool.map(lambda reference: str(_order(api, reference).get("state", "unknown")), wanted)
    report.orders.update(states)
    _sum_up(report, receipts, events)


def _wanted(plan: Plan, receipts: dict[str, _Stored]) -> dict[str, set[str]]:
    """The stored events of each order of the plan."""
    wanted: dict[str, set[str]] = {order.reference: set() for order in plan.orders}
    for post in plan.posts:
        stored = {post.event_id} & receipts.keys()
        wanted.setdefault(post.order_reference, set()).update(stored)
    return wanted


def _order(api: OrderApi, reference: str) -> dict[str, Any]:
    try:
        return api.order(reference)
    except TriggerError:
        # Away for a moment (a restart under load): the next look tells, until the time is over.
        return {}


def _events_of(
    api: OrderApi, order: dict[str, Any], wanted: set[str], receipts: dict[str, _Stored]
) -> dict[str, dict[str, Any]]:
    listed = order.get("events", [])
    by_receipt = {e.get("receipt"): e for e in listed}
    by_id = {e.get("provider_event_id"): e for e in listed}
    found: dict[str, dict[str, Any]] = {}
    for event_id in wanted if order else ():
        stored = receipts[event_id]
        event = by_receipt.get(stored.receipt) if stored.receipt else by_id.get(stored.event_id)
        if event is None and stored.receipt:
            # An order with very many events lists only some of them.
            event = api.event(stored.receipt)
        if event is not None:
            found[event_id] = event
    return found


def _settled(event: dict[str, Any] | None) -> bool:
    if event is None:
        return False
    return event.get("state") in ENDED or (
        event.get("state") == "pending" and bool(event.get("parked_reason"))
    )


def _sum_up(report: Report, receipts: dict[str, _Stored], events: dict[str, dict[str, Any]]) -> None:
    for event_id in receipts:
        event = events.get(event_id)
        label, detail = _label(event)
        report.events[label] += 1
        if detail and len(report.details) < DETAILS_MAX:
            report.details.append(f"{event_id}: {label}: {detail}")


def _label(event: dict[str, Any] | None) -> tuple[str, str]:
    """How one event stands, in the words of the page, and the operator's detail where there is one."""
    if event is None:
        return "not seen", ""
    state = str(event.get("state"))
    detail = str(event.get("detail") or "")
    if state == "pending" and event.get("parked_reason"):
        return f"parked ({event['parked_reason']})", detail
    if state not in ENDED:
        return f"still {state}", ""
    outcome, reason = str(event.get("outcome") or ""), event.get("reason")
    if state == "processed":
        return (f"{outcome} ({reason})" if reason else outcome), ""
    return f"{state} ({reason or outcome})", detail

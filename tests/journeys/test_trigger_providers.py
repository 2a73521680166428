"""`receiver trigger` plays real providers against a running service, whatever they want to hear."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from receiver.accounts.tokens import create_token
from receiver.clock import Clock
from receiver.deps import Deps
from receiver.embedded import EmbeddedPostgres
from receiver.inbox.process import Processor
from receiver.providers.payment_event import Kind
from receiver.providers.registry import provider_of
from receiver.settings import Secret, Settings, Source
from receiver.simulator.dialects import DIALECTS
from receiver.simulator.order_api import OrderApi
from receiver.simulator.scenarios import SEEDED_TIME, Run, plan, run_tag
from receiver.simulator.sender import Sender
from receiver.simulator.trigger import Report, trigger
from tests.running import new_database, run_web

TOKEN = "rcv_journey_0123456789abcdefghijklmnop"
SECRETS = {
    "stripe": "whsec_simulated_0123456789",
    "adyen": "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    "gocardless": "gc_simulated_0123456789",
    "sslcommerz": "store_simulated@ssl",
    "braintree": "public_key|private_key",
    "mollie_classic": "",
}
TOML = "".join(
    f'[sources.{name}]\nprovider = "{name}"\n' + (f'secrets = ["env:S_{name.upper()}"]\n' if secret else "")
    for name, secret in SECRETS.items()
)


@pytest.fixture(scope="module")
def api(server: EmbeddedPostgres) -> Iterator[OrderApi]:
    """The shipped web server with a source for each provider, and a worker in this process."""
    sources = {name: source_of(name) for name in SECRETS}
    environment = {f"S_{name.upper()}": secret for name, secret in SECRETS.items() if secret}
    with new_database(server) as url, run_web(url, sources=TOML, environment=environment) as web:
        deps = Deps.build(Settings(database_url=url, sources=sources, secret_key="x" * 40), clock=Clock())
        with deps.sessions.begin() as session:
            scopes = ("orders:read", "orders:write", "events:read")
            create_token(session, token_id=deps.dice.new_id(), name="trigger", scopes=scopes, text=TOKEN)
        processor, ended = Processor(deps, "w1"), threading.Event()

        def work() -> None:
            while not ended.wait(0.1):
                processor.tick()

        worker = threading.Thread(target=work)
        worker.start()
        yield OrderApi(f"http://{web.host}:{web.port}", TOKEN)
        ended.set()
        worker.join(30)
        deps.dispose()


def source_of(name: str) -> Source:
    """The source of a provider."""
    secret = SECRETS[name]
    return Source(name, name, (Secret("env:S", secret),) if secret else ())


def play(api: OrderApi, name: str, kind: Kind, fault: str | None = None) -> Report:
    """One scenario, signed and posted, and what became of it."""
    source = source_of(name)
    spoken = provider_of(source)
    run = Run(
        name,
        kind,
        DIALECTS[name],
        run_tag(3, name, kind, fault),
        SEEDED_TIME,
        fault,
        accepted=spoken.answers.accepted,
        unverified=spoken.answers.unverified,
    )
    return trigger(api, Sender(spoken, source), plan(run))


@pytest.mark.parametrize(
    "name,kind,events,state",
    [
        ("stripe", Kind.REFUNDED, {"applied": 2}, "refunded"),
        ("adyen", Kind.DISPUTE_LOST, {"applied": 3}, "charged_back"),
        ("sslcommerz", Kind.SUCCEEDED, {"applied": 1}, "paid"),
        ("braintree", Kind.REFUNDED, {"applied": 2}, "refunded"),
        ("gocardless", Kind.SUCCEEDED, {"failed (unconfirmed)": 1}, "pending"),
        ("mollie_classic", Kind.OTHER, {"failed (unconfirmed)": 1}, "pending"),
    ],
)
def test_a_provider_is_played_to_the_end(
    api: OrderApi, name: str, kind: Kind, events: dict[str, int], state: str
) -> None:
    """Each post is answered as the provider wants it, and each event is found whether or not it was told
    its receipt; what must be read back says so.
    """
    report = play(api, name, kind)

    assert report.unexpected == []
    assert dict(report.events) == events
    assert dict(report.orders) == {state: 1}


@pytest.mark.parametrize("name,status", [("stripe", "401"), ("gocardless", "498")])
def test_a_tampered_post_is_refused_as_the_provider_wants(api: OrderApi, name: str, status: str) -> None:
    """The last post of the scenario has a byte changed after signing."""
    report = play(api, name, Kind.SUCCEEDED, "tamper")

    assert report.unexpected == []
    assert dict(report.answers) == {status: 1}

"""The store of certificates: fetched once, within limits, and honest about what cannot be told now."""

import base64
import threading
import warnings

import pytest
import requests
import responses
from cryptography.x509.verification import Store
from hypothesis import given, settings
from hypothesis import strategies as st

from receiver.providers.certificates import (
    ABSENT_SECONDS,
    FETCHES_A_MINUTE,
    KEPT_SECONDS,
    MOST_BYTES,
    MOST_KEPT,
    CertificateStore,
    CertificateUnavailable,
    fetch_over_https,
    leads_to_root,
    roots_of,
)
from tests.providers.certificates import Served, cases_of

_, CERTS, ROOTS = cases_of("paypal")
URL = next(iter(CERTS))
T = 1_794_827_292.0


def test_a_certificate_is_fetched_once_a_day():
    """Every delivery names the same certificate."""
    served = Served(CERTS)
    store = CertificateStore(served)

    assert store.chain(URL, T) == store.chain(URL, T + KEPT_SECONDS)
    assert served.asked == [URL]
    store.chain(URL, T + KEPT_SECONDS + 1)
    assert served.asked == [URL, URL]


@pytest.mark.parametrize("body", [None, b"", b"<html>", b"-----BEGIN CERTIFICATE-----\nAAAA\n", b"\xff"])
def test_what_is_not_there_is_remembered_for_minutes(body):
    """A stranger's invented URL costs one fetch; a certificate that appears later is found."""
    asked = []
    store = CertificateStore(lambda url: asked.append(url) or body)

    assert store.chain(URL, T) == store.chain(URL, T + ABSENT_SECONDS) == ()
    assert len(asked) == 1
    store.chain(URL, T + ABSENT_SECONDS + 1)
    assert len(asked) == 2


def test_new_urls_are_few_a_minute_and_known_ones_go_on():
    """Whoever invents URLs slows down other new certificates alone."""
    store = CertificateStore(Served(CERTS))
    known = store.chain(URL, T)
    for number in range(FETCHES_A_MINUTE - 1):
        assert store.chain(f"https://api.paypal.com/{number}", T) == ()

    with pytest.raises(CertificateUnavailable):
        store.chain("https://api.paypal.com/one-more", T)
    assert store.chain(URL, T) == known
    assert store.chain("https://api.paypal.com/one-more", T + 61) == ()


def test_inventions_push_no_certificate_out():
    """The store is bounded, and what is not there goes first."""
    served = Served(CERTS)
    store = CertificateStore(served)
    store.chain(URL, T)
    for number in range(2 * MOST_KEPT):
        store.chain(f"https://api.paypal.com/{number}", T + 61 * number)

    store.chain(URL, T + 100)
    assert served.asked.count(URL) == 1
    assert len(store._kept) <= MOST_KEPT


def test_a_fault_of_the_fetch_is_forgotten():
    """The next delivery asks again."""
    answers = [CertificateUnavailable("down"), CERTS[URL].encode()]

    def fetch(url):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    store = CertificateStore(fetch)
    with pytest.raises(CertificateUnavailable):
        store.chain(URL, T)
    assert len(store.chain(URL, T)) == 1


def test_many_threads_ask_once():
    """Deliveries that arrive together wait for one fetch."""
    served = Served(CERTS)
    store = CertificateStore(served)
    threads = [threading.Thread(target=store.chain, args=(URL, T)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert served.asked == [URL]


DER = base64.b64decode("".join(CERTS[URL].split("-----")[2].split()))


@settings(max_examples=300, deadline=None)
@given(
    place=st.integers(0, len(DER) - 1),
    piece=st.binary(min_size=1, max_size=4),
    junk=st.binary(max_size=40),
)
def test_bytes_that_are_no_certificate_are_none(place, piece, junk):
    """Whatever stands at the URL, its chain is used or refused without a fault."""
    bent = DER[:place] + piece + DER[place + len(piece) :]
    pem = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(bent) + b"-----END CERTIFICATE-----\n"
    for body in (pem, pem + junk, junk, b"-----BEGIN CERTIFICATE-----" + junk):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chain = CertificateStore(lambda url, body=body: body).chain(URL, T)
            assert not chain or chain[0].public_key()
            assert isinstance(chain and leads_to_root(chain, roots_of(ROOTS), T), bool | tuple)


@responses.activate
@pytest.mark.parametrize("status", [301, 400, 403, 404, 410])
def test_no_redirect_is_followed_and_nothing_there_is_nothing(status):
    """The host was looked at; where it sends us was not."""
    answer = responses.get(URL, status=status, headers={"Location": "https://evil.example/"})

    assert fetch_over_https(URL) is None
    assert answer.call_count == 1


@responses.activate
def test_the_bytes_of_a_certificate_are_bounded():
    """A certificate is a few KiB; a flood is none."""
    responses.get(URL, body=CERTS[URL])
    responses.get(URL + "0", body=b"x" * (MOST_BYTES + 1))

    assert fetch_over_https(URL) == CERTS[URL].encode()
    assert fetch_over_https(URL + "0") is None


@responses.activate
@pytest.mark.parametrize("fault", [408, 429, 500, 503, requests.ConnectionError(), requests.ReadTimeout()])
def test_what_cannot_be_told_now_is_unavailable(fault):
    """The provider shall come again, so it is no refusal."""
    if isinstance(fault, int):
        responses.get(URL, status=fault)
    else:
        responses.get(URL, body=fault)

    with pytest.raises(CertificateUnavailable):
        fetch_over_https(URL)


def test_a_chain_leads_to_its_root_while_it_is_valid():
    """Another root, a certificate of its own making, and a time after its end are refused."""
    chains = {url: CertificateStore(Served(CERTS)).chain(url, T) for url in CERTS}
    roots = roots_of(ROOTS)
    self_signed = next(url for url in CERTS if "d96a524f" in url)

    assert leads_to_root(chains[URL], roots, T)
    assert not leads_to_root(chains[self_signed], roots, T)
    assert not leads_to_root(chains[URL], roots_of(""), T)
    assert not leads_to_root(chains[URL], roots, 4_800_000_000.0)
    assert not leads_to_root(chains[URL], roots, 1e300)
    assert isinstance(roots_of(""), Store)
    assert roots_of("no certificate") is None
    assert roots_of("é") is None

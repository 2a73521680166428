"""The signature engine: one description a scheme, a verdict for any input, a reason for operators."""

import base64
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from receiver.signature import (
    KeyValues,
    MacScheme,
    Match,
    Plain,
    SignatureList,
    Timestamp,
    Unverified,
    sign,
    verify,
)

T = 1_790_584_266
BODY = b'{"id":"evt_1","note":"Zo\xc3\xab"}'

PLAIN = MacScheme(header="X-Signature")
PREFIXED = MacScheme(header="X-Sig", parse=Plain(prefix="sha256="))
LISTED = MacScheme(
    header="X-Signature",
    parse=SignatureList(",", "v1="),
    template="v1:{ts}:{body}",
    timestamp=Timestamp(header="X-Timestamp"),
)
PAIRED = MacScheme(
    header="Pay-Signature",
    parse=KeyValues(",", "v1"),
    template="{ts}.{body}",
    timestamp=Timestamp(key="t", future=None),
)
MILLIS = MacScheme(
    header="X-Signature", template="{ts}.{body}", timestamp=Timestamp(header="X-Timestamp", unit="ms")
)
STANDARD = MacScheme(
    header="webhook-signature",
    parse=SignatureList(" ", "v1,"),
    template="{header:webhook-id}.{ts}.{body}",
    encoding="base64",
    key="base64",
    key_prefix="whsec_",
    timestamp=Timestamp(header="webhook-timestamp"),
)
SQUARE = MacScheme(header="X-Sq", template="{config:notification_url}{body}", encoding="base64")
SHA512 = MacScheme(header="X-Pay", algorithm="sha512", key="hex")

SECRETS = {"text": "k1-secret", "hex": "00ff" * 16, "base64": "whsec_" + base64.b64encode(b"k" * 32).decode()}
SCHEMES = [PLAIN, PREFIXED, LISTED, PAIRED, MILLIS, STANDARD, SQUARE, SHA512]
CONFIG = {"notification_url": "https://inbox.example:8443/webhooks/sq?x=1"}


def mac(message, key=b"k1-secret", algorithm="sha256"):
    return hmac.new(key, message, algorithm).hexdigest()


def check(scheme, headers, secrets=("k1-secret",), body=BODY, now=T, **options):
    return verify(scheme, secrets, Headers(list(headers.items())), body, now, **options)


def listed(value, stamp=str(T), **options):
    return check(LISTED, {"X-Signature": value, "X-Timestamp": stamp}, **options)


S = mac(f"v1:{T}:".encode() + BODY)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: f"{scheme.template}-{scheme.algorithm}")
def test_what_is_signed_verifies_and_a_changed_byte_does_not(scheme):
    """Every kind of description signs what it verifies, under its own key form only."""
    secret = SECRETS[scheme.key]
    headers = sign(scheme, [secret], BODY, T, {"webhook-id": "msg_1"}, CONFIG)

    assert check(scheme, headers, [secret], config=CONFIG) == Match(0)
    assert check(scheme, headers, [secret], body=BODY + b"\n", config=CONFIG) == Unverified("signature")


def test_the_message_is_what_the_template_says():
    """The MAC is the plain HMAC of the template's bytes, so that any tool can compute it."""
    headers = sign(LISTED, ["k1-secret"], BODY, T)

    assert headers == {"X-Timestamp": str(T), "X-Signature": f"v1={S}"}


def test_the_configured_url_counts_not_the_requests():
    """A scheme over a setting fails by name where the setting is missing."""
    headers = sign(SQUARE, ["k1-secret"], BODY, T, config=CONFIG)

    assert check(SQUARE, headers, config={}) == Unverified("missing_setting")
    assert check(SQUARE, headers, config={"notification_url": "http://x/"}) == Unverified("signature")


@pytest.mark.field_case(7)
@pytest.mark.parametrize(
    "value, reason",
    [
        (None, "missing_signature"),
        ("", "missing_signature"),
        ("  ", "missing_signature"),
        ("sha256=", "malformed_signature"),
        ("null", "malformed_signature"),
    ],
)
def test_no_signature_is_never_accepted(value, reason):
    """A header that is absent, empty or only a prefix is refused although the body is right."""
    headers = {} if value is None else {"X-Sig": value}

    assert check(PREFIXED, headers) == Unverified(reason)


GOOD = mac(BODY)


@pytest.mark.field_case(6)
@pytest.mark.field_case(9)
@pytest.mark.parametrize(
    "value",
    [
        "a",
        "a" * 10_000,
        GOOD[:-1],
        GOOD + "0",
        "zz" * 32,
        GOOD[:63] + "\xe9",
        "😀" * 4,
        GOOD[:63] + "\ud800",
        GOOD[:-1] + "\x00",
        "٣" * 64,
        "=" * 64,
        "\xa0" + GOOD,
    ],
)
def test_a_broken_signature_is_refused_and_raises_nothing(value):
    """Any length and any character gives a verdict, never an exception."""
    for prefix in ("", "sha256="):
        verdict = check(PREFIXED, {"X-Sig": prefix + value})
        assert isinstance(verdict, Unverified)
        assert verdict.reason in ("malformed_signature", "signature")


@pytest.mark.field_case(6)
@pytest.mark.parametrize("stamp", ["\xe9", "17905842\xe96", "😀", "\ud800", "١٧٩٠٥٨٤٢٦٦", "1_790_584_266"])
def test_a_timestamp_outside_ascii_is_refused_and_raises_nothing(stamp):
    """Only ASCII digits are digits."""
    assert listed(f"v1={S}", stamp) == Unverified("malformed_timestamp")


@pytest.mark.field_case(10)
def test_each_signature_of_a_header_counts_up_to_a_cap():
    """Right then wrong and wrong then right pass; a flood is refused unread."""
    wrong = "0" * 64

    assert listed(f"v1={wrong},v1={S}") == Match(0)
    assert listed(f"v1={S},v1={wrong}") == Match(0)
    assert listed(f"v1={S}", secrets=["k2", "k1-secret"]) == Match(1)
    assert listed(",".join([f"v1={S}"] * 17)) == Unverified("too_many_signatures")
    assert listed(",".join([f"v1={wrong}"] * 2000)) == Unverified("too_many_signatures")
    assert listed("," * 100) == Unverified("too_many_signatures")


@pytest.mark.field_case(11)
def test_a_retired_secret_no_longer_verifies():
    """With both secrets active either passes and says which; after retirement the old one does not."""
    new, old = sign(PLAIN, ["k1-secret"], BODY, T), sign(PLAIN, ["k0"], BODY, T)

    assert check(PLAIN, new, ["k1-secret", "k0"]) == Match(0)
    assert check(PLAIN, old, ["k1-secret", "k0"]) == Match(1)
    assert check(PLAIN, old, ["k1-secret"]) == Unverified("signature")


RAW = hmac.digest(b"k1-secret", BODY, "sha256")


@pytest.mark.field_case(12)
@pytest.mark.parametrize(
    "value",
    [f"sha256={GOOD}", GOOD, f"sha256= {GOOD}", f"sha256={GOOD}  ", f"\t{GOOD} ", f" sha256=\t{GOOD}"],
)
def test_lower_case_hex_passes_with_blanks_around(value):
    """Blanks around the value or after the prefix are cut."""
    assert check(PREFIXED, {"X-Sig": value}) == Match(0)


@pytest.mark.field_case(12)
@pytest.mark.parametrize(
    "value",
    [
        GOOD.upper(),
        GOOD[:32] + GOOD[32:].upper(),
        GOOD[:32] + " " + GOOD[32:],
        base64.b64encode(RAW).decode(),
        base64.urlsafe_b64encode(RAW).decode(),
        base64.b64encode(RAW).decode().rstrip("="),
    ],
)
def test_the_right_mac_in_another_encoding_is_refused_by_name(value):
    """The operator sees that the secret is right and the spelling is not; the sender sees a refusal."""
    assert check(PREFIXED, {"X-Sig": value}) == Unverified("wrong_encoding")


def test_a_wrong_mac_in_another_encoding_is_only_wrong():
    """Junk cannot pass for a spelling mistake of an authentic sender."""
    assert check(PREFIXED, {"X-Sig": "A" * 64}) == Unverified("malformed_signature")


@pytest.mark.parametrize(
    "change", [lambda s: s.rstrip("="), lambda s: s[:9] + "!*" + s[9:], lambda s: s + ",x"]
)
def test_base64_is_compared_as_text(change):
    """Padding left out and characters outside the alphabet are not forgiven."""
    headers = sign(STANDARD, [SECRETS["base64"]], BODY, T, {"webhook-id": "msg_1"})
    headers["webhook-signature"] = change(headers["webhook-signature"])

    assert isinstance(check(STANDARD, headers, [SECRETS["base64"]]), Unverified)


P = mac(f"{T}.".encode() + BODY)


@pytest.mark.field_case(13)
@pytest.mark.parametrize(
    "value, verdict",
    [
        (f"t={T}, v1={P}", Match(0)),
        (f"v1={P},t={T}", Match(0)),
        (f"t={T},v1={P},v0=junk,", Match(0)),
        (f"t={T},t={T},v1={P}", Match(0)),
        (f"T={T},V1={P}", Unverified("signature_version")),
        (f"t={T},t={T + 1},v1={P}", Unverified("malformed_timestamp")),
        (f"v1={P}", Unverified("missing_timestamp")),
        (f"{T},{P}", Unverified("malformed_signature")),
        (f"t={T},v1=", Unverified("malformed_signature")),
    ],
)
def test_pairs_are_read_by_key_not_by_place(value, verdict):
    """Order and blanks do not matter, keys are exact, two different times are refused."""
    assert check(PAIRED, {"Pay-Signature": value}) == verdict


@pytest.mark.field_case(15)
@pytest.mark.parametrize(
    "stamp, reason",
    [
        ("NaN", "malformed_timestamp"),
        ("inf", "malformed_timestamp"),
        ("", "malformed_timestamp"),
        ("-1", "malformed_timestamp"),
        ("+1790584266", "malformed_timestamp"),
        ("1790584266.0", "malformed_timestamp"),
        ("9" * 25, "malformed_timestamp"),
        ("0", "timestamp_too_old"),
    ],
)
def test_a_timestamp_that_is_no_time_is_refused_under_a_right_mac(stamp, reason):
    """Text, signs and overlong digits never compare their way past the window."""
    verdict = listed("v1=" + mac(f"v1:{stamp}:".encode() + BODY), stamp)

    assert isinstance(verdict, Unverified)
    assert verdict.reason == reason


@pytest.mark.field_case(16)
def test_seconds_and_milliseconds_are_never_guessed():
    """A source of seconds refuses 13 digits as outside the window; one of milliseconds refuses 10."""
    millis = str(T * 1000 + 123)
    in_seconds = listed("v1=" + mac(f"v1:{millis}:".encode() + BODY), millis)

    assert in_seconds == Unverified("timestamp_in_future", 10**9)
    for stamp, expected in ((millis, Match(0)), (str(T), Unverified("timestamp_too_old", -T + T // 1000))):
        headers = {"X-Signature": mac(f"{stamp}.".encode() + BODY), "X-Timestamp": stamp}
        verdict = check(MILLIS, headers)
        assert getattr(verdict, "reason", None) == getattr(expected, "reason", None)


@pytest.mark.field_case(17)
@pytest.mark.field_case(18)
@pytest.mark.parametrize(
    "skew, reason",
    [
        (30, None),
        (299, None),
        (300, None),
        (301, "timestamp_in_future"),
        (315_360_000, "timestamp_in_future"),
        (-240, None),
        (-299, None),
        (-300, None),
        (-301, "timestamp_too_old"),
    ],
)
def test_the_window_has_two_sides_and_its_edges_are_inside(skew, reason):
    """300 seconds either way pass, one more does not, and the measured skew is told to the operator."""
    stamp = str(T + skew)
    verdict = listed("v1=" + mac(f"v1:{stamp}:".encode() + BODY), stamp, now=T + 0.99)

    assert verdict == (Match(0) if reason is None else Unverified(reason, skew))


def test_a_side_without_a_window_is_not_given_one_by_a_tolerance():
    """A source's tolerance replaces the sides that the scheme checks, and no other."""
    ahead = f"t={T + 9000},v1={mac(f'{T + 9000}.'.encode() + BODY)}"
    behind = f"t={T - 9},v1={mac(f'{T - 9}.'.encode() + BODY)}"

    assert check(PAIRED, {"Pay-Signature": ahead}, tolerance=5) == Match(0)
    assert check(PAIRED, {"Pay-Signature": behind}, tolerance=9) == Match(0)
    assert check(PAIRED, {"Pay-Signature": behind}, tolerance=8) == Unverified("timestamp_too_old", -9)


def test_skew_is_measured_on_authentic_messages_alone():
    """An old time under a wrong MAC is a wrong signature: junk cannot move the measured skew."""
    assert listed("v1=" + "0" * 64, str(T - 9000)) == Unverified("signature")


def test_an_unsigned_timestamp_may_be_optional_and_counts_when_it_is_there():
    """Optional means that it may be absent, not that it may be old."""
    scheme = MacScheme(header="X-Signature", timestamp=Timestamp(header="X-Timestamp", required=False))

    assert check(scheme, {"X-Signature": GOOD}) == Match(0)
    assert check(scheme, {"X-Signature": GOOD}, timestamp_required=True) == Unverified("missing_timestamp")
    old = {"X-Signature": GOOD, "X-Timestamp": str(T - 301)}
    assert check(scheme, old) == Unverified("timestamp_too_old", -301)


def test_a_signed_timestamp_can_never_be_optional():
    """Whatever a source asks for, a template with the time needs the time."""
    verdict = check(LISTED, {"X-Signature": f"v1={S}"}, timestamp_required=False)

    assert verdict == Unverified("missing_timestamp")


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whpk_AoRVyUsBpFz2wVm5DCk5H9oWSmdZHFMwBkOrRI60+Xg=", "a b", "\udcff"]
)
def test_a_secret_that_cannot_be_a_key_verifies_nothing(secret):
    """An empty or misspelt secret is no empty key, and a public key is no secret."""
    headers = sign(STANDARD, [SECRETS["base64"]], BODY, T, {"webhook-id": "msg_1"})

    assert check(STANDARD, headers, [secret]) == Unverified("unusable_secret")
    assert check(STANDARD, headers, [secret, SECRETS["base64"]]) == Match(1)
    with pytest.raises(ValueError):
        sign(STANDARD, [secret], BODY, T, {"webhook-id": "msg_1"})


def test_a_header_that_is_signed_must_be_there():
    """A missing signed header has a reason of its own."""
    headers = sign(STANDARD, [SECRETS["base64"]], BODY, T, {"webhook-id": "msg_1"})
    del headers["webhook-id"]

    assert check(STANDARD, headers, [SECRETS["base64"]]) == Unverified("missing_header")
    with pytest.raises(ValueError):
        sign(STANDARD, [SECRETS["base64"]], BODY, T)


def test_rotation_signs_with_every_secret():
    """A list holds one signature for each secret; a plain header has room for one."""
    headers = sign(LISTED, ["new", "old"], BODY, T)

    assert check(LISTED, headers, ["old"]) == check(LISTED, headers, ["new"]) == Match(0)
    with pytest.raises(ValueError):
        sign(PLAIN, ["new", "old"], BODY, T)


def test_a_description_that_cannot_work_is_refused_when_it_is_made():
    """A mistake in a description shows at import, not at the first callback."""
    with pytest.raises(ValueError):
        MacScheme(header="X", template="{ts}.{body}")
    with pytest.raises(ValueError):
        MacScheme(header="X", timestamp=Timestamp(key="t"))


@given(
    scheme=st.sampled_from(SCHEMES),
    values=st.lists(
        st.one_of(st.none(), st.text(), st.from_regex(r"(t=[0-9]+,)?(v1[=,])?[0-9a-f]{64}")), min_size=3
    ),
    body=st.binary(),
    now=st.floats(0, 1e12),
)
def test_no_input_raises(scheme, values, body, now):
    """Whatever stands in headers and body, the answer is a refusal."""
    names = (scheme.header, getattr(scheme.timestamp, "header", None) or "x", "webhook-id")
    headers = {name: value for name, value in zip(names, values, strict=False) if value is not None}

    assert isinstance(verify(scheme, ["k1-secret"], headers, body, now, config=CONFIG), Unverified)

"""``hmac``: a provider that no file knows, described by its user in ``sources.toml`` alone.

The options say how it signs (any MacScheme), where the event's id and type stand, where its facts
stand, and which type means what. Every fault is named together; a source with faults is not ready and
is answered 503, since a description that is half understood must not let anything in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_ANY, MINOR_ANY
from receiver.providers.authentication import MacAuthentication, Options, SignedRequest, Verified
from receiver.providers.body_map import BodyMap, Where, meanings_of
from receiver.providers.identities import BodyId, HeaderId, Identity
from receiver.providers.paths import TRANSACTION, Path, parse_path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.settings import Source
from receiver.signature import HeaderMap, KeyValues, MacScheme, Plain, SignatureList, Timestamp, Unverified

CHOICES: Mapping[str, tuple[str, ...]] = {
    "parse": ("plain", "prefix", "list", "pairs"),
    "algorithm": ("sha1", "sha256", "sha512"),
    "encoding": ("hex", "base64"),
    "key": ("text", "hex", "base64"),
    "timestamp_unit": ("s", "ms"),
    "amount_unit": ("minor", "major"),
    "time": ("iso", "unix", "unix_ms"),
}
TEXTS = frozenset(
    {
        "header", "prefix", "separator", "pair", "template", "key_prefix", "timestamp_header",
        "timestamp_pair", "id", "id_header", "type",
    }
)  # fmt: skip
TABLES = frozenset({"paths", "kinds", "effects"})
FACTS = (
    "order_reference",
    "transaction_id",
    "amount",
    "currency",
    "refund_total",
    "sequence",
    "account",
    "live",
    "occurred_at",
)
_CARRIED = {"amount": "amount_minor", "refund_total": "refund_total_minor"}
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_TIMES = {"iso": facts.occurred_at, "unix": facts.unix_seconds, "unix_ms": facts.unix_milliseconds}
_OF_THE_TRANSACTION = frozenset({Kind.AUTHORIZED, Kind.SUCCEEDED, Kind.VOIDED})


@dataclass(frozen=True)
class Undescribed:
    """The proof of a source whose description has faults: nothing is ever verified."""

    needs_secret: bool = True
    key_form: str = "text"

    def usable(self, secret: str) -> bool:
        return False

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        return Unverified("missing_setting")

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        raise ValueError("cannot sign: the source's options do not describe how")

    def faults(self, source: Source) -> list[str]:
        return []


class _Options:
    """Reads the options of one description and collects the faults."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        known = {*CHOICES, *TEXTS, *TABLES, "required_headers", "past_seconds", "future_seconds"}
        self.faults = [f"options.{name} is no option of hmac" for name in sorted(set(options) - known)]

    def text(self, name: str, default: str = "") -> str:
        value = self.options.get(name, default)
        if not isinstance(value, str):
            self.faults.append(f"options.{name} must be a text")
            return default
        return value

    def choice(self, name: str) -> Any:
        value = self.options.get(name)
        allowed = CHOICES[name]
        default = "sha256" if name == "algorithm" else allowed[0]
        if value is not None and value not in allowed:
            self.faults.append(f"options.{name} must be one of {', '.join(allowed)}")
            return default
        return default if value is None else value

    def header(self, name: str, needed: bool = False) -> str:
        value = self.text(name)
        if (value or needed) and not _HEADER.fullmatch(value):
            self.faults.append(f"options.{name} must be a header's name, such as X-Signature")
        return value

    def path(self, name: str, value: object) -> Path | None:
        if value is None or value == "":
            return None
        try:
            if isinstance(value, str):
                return parse_path(value)
        except ValueError:
            pass
        self.faults.append(f"options.{name} must be names with points between, such as data.order_id")
        return None

    def table(self, name: str, keys: frozenset[str] | None = None) -> Mapping[str, Any]:
        value = self.options.get(name, {})
        if not isinstance(value, Mapping):
            self.faults.append(f"options.{name} must be a table")
            return {}
        for key in sorted(set(value) - keys) if keys is not None else ():
            self.faults.append(f"options.{name}.{key} is none of {', '.join(sorted(keys or ()))}")
        return value

    def seconds(self, name: str) -> int:
        value = self.options.get(name, 300)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 30 * 86400:
            self.faults.append(f"options.{name} must be a whole number from 1 to 2592000")
            return 300
        return value


def _parse(read: _Options) -> Plain | SignatureList | KeyValues:
    parse, prefix = read.choice("parse"), read.text("prefix")
    separator = read.text("separator", ",") or ","
    if parse == "list":
        return SignatureList(separator, prefix)
    if parse == "pairs":
        pair = read.text("pair")
        if not pair:
            read.faults.append(
                'options.pair must name the signature\'s key, such as "v1", where parse is pairs'
            )
        return KeyValues(separator, pair)
    if parse == "prefix" and not prefix:
        read.faults.append("options.prefix must be set where parse is prefix")
    return Plain(prefix, prefix_required=parse == "prefix")


def _scheme(read: _Options) -> MacScheme | None:
    header, parse = read.header("header", needed=True), _parse(read)
    at_header, at_pair = read.header("timestamp_header"), read.text("timestamp_pair")
    timestamp = None
    if at_header and at_pair:
        read.faults.append("options.timestamp_header and timestamp_pair cannot both be set")
    unit, past, future = (
        read.choice("timestamp_unit"),
        read.seconds("past_seconds"),
        read.seconds("future_seconds"),
    )
    algorithm, encoding, key = read.choice("algorithm"), read.choice("encoding"), read.choice("key")
    template, key_prefix = read.text("template", "{body}"), read.text("key_prefix")
    if at_header or at_pair:
        timestamp = Timestamp(at_header or None, at_pair or None, unit, past, future)
    required = read.options.get("required_headers", [])
    if not isinstance(required, list) or not all(
        isinstance(r, str) and _HEADER.fullmatch(r) for r in required
    ):
        read.faults.append("options.required_headers must be a list of headers' names")
        required = []
    if "{body}" not in template:
        read.faults.append("options.template must hold {body}: nothing outside what is signed is believed")
    if re.search(r"[{}]", re.sub(r"\{(body|ts|header:[A-Za-z0-9-]+)\}", "", template)):
        read.faults.append("options.template may hold {body}, {ts} and {header:NAME} alone")
        return None
    try:
        return MacScheme(
            header=header,
            parse=parse,
            template=template,
            algorithm=algorithm,
            encoding=encoding,
            key=key,
            key_prefix=key_prefix,
            timestamp=timestamp,
            required_headers=tuple(required),
        )
    except ValueError as error:
        read.faults.append(f"options.template: {error}")
        return None


def _identity(read: _Options) -> Identity:
    id_header = read.header("id_header")
    path = read.path("id", read.options.get("id"))
    if id_header and path is not None:
        read.faults.append("options.id and id_header cannot both be set")
    if id_header:
        if f"{{header:{id_header}}}".lower() not in read.text("template").lower():
            read.faults.append("options.id_header must be part of options.template: an unsigned id is none")
        return HeaderId(((read.text("header"), id_header),))
    if path is None:
        read.faults.append("options.id must say where the event's id stands")
    return BodyId(path or ("id",))


def _body(read: _Options) -> tuple[BodyMap, frozenset[str]]:
    paths = {
        name: read.path(f"paths.{name}", value)
        for name, value in read.table("paths", frozenset(FACTS)).items()
    }
    kinds: dict[str, Kind] = {}
    allowed = [kind.value for kind in Kind if kind not in (Kind.OTHER, Kind.REFUND_TOTAL)]
    for name, value in read.table("kinds").items():
        if value in allowed:
            kinds[name] = Kind(value)
        else:
            read.faults.append(f"options.kinds.{name} must be one of {', '.join(allowed)}")
    effects: dict[Kind, Path] = dict.fromkeys(_OF_THE_TRANSACTION, TRANSACTION)
    for name, value in read.table("effects", frozenset(allowed)).items():
        path = read.path(f"effects.{name}", value)
        if name in allowed and path is not None:
            effects[Kind(name)] = path
    for needed in ("transaction_id", "amount", "currency"):
        if kinds and paths.get(needed) is None:
            read.faults.append(f"options.paths.{needed} must be set: payments are compared by it")
    where = Where(
        order_reference=paths.get("order_reference"),
        transaction_id=paths.get("transaction_id"),
        amount=paths.get("amount"),
        currency=paths.get("currency"),
        refund_total=paths.get("refund_total"),
        sequence=paths.get("sequence"),
        account=paths.get("account"),
        live=paths.get("live"),
        occurred_at=paths.get("occurred_at"),
        unit=MAJOR_ANY if read.choice("amount_unit") == "major" else MINOR_ANY,
        ids=facts.text_or_integer,
        time=_TIMES[read.choice("time")],
    )
    event_type = read.path("type", read.options.get("type"))
    if kinds and event_type is None:
        read.faults.append("options.type must say where the event's type stands")
    never = frozenset(_CARRIED.get(name, name) for name in FACTS if paths.get(name) is None)
    body = BodyMap(type=event_type, meanings=meanings_of(kinds, where, effects), otherwise=where)
    return body, never - {"order_reference", "transaction_id", "occurred_at", "refund_total_minor"}


def _described(provider: Provider, options: Mapping[str, object]) -> Provider:
    read = _Options(options)
    scheme = _scheme(read)
    identity = _identity(read)
    body, never_carries = _body(read)
    if read.faults or scheme is None:
        return replace(provider, authentication=Undescribed())
    signed = tuple(
        name if kind == "header" else "timestamp" if kind == "ts" else kind
        for kind, name in scheme.parts
        if kind != "literal"
    )
    return replace(
        provider,
        authentication=MacAuthentication((scheme,)),
        identity=identity,
        body=body,
        never_carries=never_carries,
        signed=signed,
    )


def _faults(options: Mapping[str, object]) -> list[str]:
    read = _Options(options)
    _scheme(read)
    _identity(read)
    _body(read)
    return list(dict.fromkeys(read.faults))


HMAC = Provider(
    name="hmac",
    authentication=Undescribed(),
    identity=BodyId(),
    body=BodyMap(meanings={}, otherwise=Where()),
    described=_described,
    described_faults=_faults,
)

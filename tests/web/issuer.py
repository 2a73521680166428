"""A small OpenID Connect issuer on loopback: discovery, authorization code with PKCE, token, keys."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from flask import Flask, jsonify, redirect, request
from werkzeug.serving import make_server


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@dataclass
class Issuer:
    """Whom it lets in is ``claims``; ``key`` signs, and ``forge`` makes it sign with another one."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    forge: bool = False
    audience: str = "receiver"
    asked: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.other_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, nonce: str) -> str:
        """An id token for the claims."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": self.audience,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            **self.claims,
        }
        head = _b64(json.dumps({"alg": "RS256", "kid": "k1", "typ": "JWT"}).encode())
        signed = f"{head}.{_b64(json.dumps(claims).encode())}"
        key = self.other_key if self.forge else self.key
        return f"{signed}.{_b64(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _application(issuer: Issuer) -> Flask:
    app = Flask("issuer")

    @app.get("/.well-known/openid-configuration")
    def discovery() -> Any:
        return jsonify(
            issuer=issuer.url,
            authorization_endpoint=f"{issuer.url}/authorize",
            token_endpoint=f"{issuer.url}/token",
            jwks_uri=f"{issuer.url}/keys",
            response_types_supported=["code"],
            subject_types_supported=["public"],
            id_token_signing_alg_values_supported=["RS256"],
        )

    @app.get("/authorize")
    def authorize() -> Any:
        code = f"code-{len(issuer.codes)}"
        issuer.codes[code] = request.args.to_dict()
        back = urlencode({"code": code, "state": request.args["state"]})
        return redirect(f"{request.args['redirect_uri']}?{back}")

    @app.post("/token")
    def token() -> Any:
        asked = issuer.codes.pop(request.form["code"], None)
        if asked is None:
            return jsonify(error="invalid_grant"), 400
        proof = _b64(hashlib.sha256(request.form["code_verifier"].encode()).digest())
        if proof != asked["code_challenge"]:
            return jsonify(error="invalid_grant"), 400
        issuer.asked.append(request.form.to_dict())
        return jsonify(
            access_token="at", token_type="Bearer", expires_in=300, id_token=issuer.token(asked["nonce"])
        )

    @app.get("/keys")
    def keys() -> Any:
        public = issuer.key.public_key().public_numbers()
        return jsonify(
            keys=[
                {
                    "kty": "RSA",
                    "kid": "k1",
                    "use": "sig",
                    "alg": "RS256",
                    "n": _number(public.n),
                    "e": _number(public.e),
                }
            ]
        )

    return app


@contextmanager
def run_issuer() -> Iterator[Issuer]:
    """The issuer behind a real socket."""
    issuer = Issuer()
    server = make_server("127.0.0.1", 0, _application(issuer), threaded=True)
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield issuer
    server.shutdown()
    thread.join(5)
    server.server_close()

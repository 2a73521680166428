"""Headers of every answer: a content policy with scripts of our own alone, and nothing left to guess."""

from __future__ import annotations

from flask import Flask, Response, request

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The pages need no script; the one that refreshes them is a file of ours, and no other one runs."""


def send_headers(app: Flask) -> None:
    """Add the headers to every answer of the application."""

    @app.after_request
    def add(response: Response) -> Response:
        headers = response.headers
        headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
        headers.setdefault("X-Content-Type-Options", "nosniff")
        if request.blueprint == "webhooks":
            return response
        headers.setdefault("X-Frame-Options", "DENY")
        # same-origin, since the form protection compares the referrer over https.
        headers.setdefault("Referrer-Policy", "same-origin")
        headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
        if request.endpoint != "layout.static":
            headers.setdefault("Cache-Control", "no-store")
        if request.is_secure:
            headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        return response

"""What ours is measured against: a plain Flask + Flask-SQLAlchemy receiver, and an empty Flask view.

The receiver is what the lesson's controller becomes when it is written straight down: verify,
validate, SELECT, add an ORM object, one commit. Its pool is as large as its threads, so that it
waits for no connection.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from datetime import UTC, datetime

from flask import Flask, Response, jsonify, request
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import DateTime, Index, LargeBinary, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

TOLERANCE_SECONDS = 300


class Base(DeclarativeBase):
    pass


class WebhookEvent(Base):
    __tablename__ = "webhook_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    provider_event_id: Mapped[str] = mapped_column(Text, unique=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[str] = mapped_column(Text, default="pending")
    received_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))

    __table_args__ = (Index("pending", "received_at", "id", postgresql_where=text("status = 'pending'")),)


db = SQLAlchemy(model_class=Base)


def create_app() -> Flask:
    """The naive receiver."""
    app = Flask("naive")
    url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
    app.config["SQLALCHEMY_DATABASE_URI"] = url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = {"pool_size": 16}
    db.init_app(app)
    secret = os.environ["BENCH_SECRET"].encode()

    @app.post("/webhooks/demo")
    def receive() -> tuple[Response, int]:
        body = request.get_data()
        stamp = request.headers.get("X-Timestamp", "")
        signed = hmac.new(secret, f"v1:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(f"v1={signed}", request.headers.get("X-Signature", "")):
            return jsonify(error="unauthorized"), 401
        if abs(time.time() - int(stamp)) > TOLERANCE_SECONDS:
            return jsonify(error="unauthorized"), 401
        event_id = request.get_json()["id"]
        if not isinstance(event_id, str) or not 0 < len(event_id) <= 128:
            return jsonify(error="unusable id"), 422
        known = db.session.execute(
            db.select(WebhookEvent).where(WebhookEvent.provider_event_id == event_id)
        ).scalar_one_or_none()
        if known is None:
            db.session.add(
                WebhookEvent(provider_event_id=event_id, payload=body, received_at=datetime.now(UTC))
            )
            db.session.commit()
        return jsonify(received=True), 200

    return app


def create_tables() -> None:
    """Create the receiver's one table."""
    app = create_app()
    with app.app_context():
        db.create_all()


def empty() -> Flask:
    """An empty view: what Flask and the server cost alone. It reads the body, as any receiver must."""
    app = Flask("empty")

    @app.post("/webhooks/demo")
    def receive() -> str:
        request.get_data()
        return "ok"

    return app


if __name__ == "__main__":
    create_tables()

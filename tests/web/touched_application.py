"""An application whose process spoke to the database before gunicorn forked it."""

from __future__ import annotations

from flask import Flask
from sqlalchemy import text

from receiver.app import create_app


def make() -> Flask:
    """Build the application, and use both engines at once as a careless health query would."""
    app = create_app()
    deps = app.extensions["receiver"]
    for engine in (deps.engine, deps.intake_engine):
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    return app

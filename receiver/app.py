"""The web application: builds Deps once, makes the one `db`, registers the doors.

`gunicorn 'receiver.app:create_app()'` calls it in each worker, after the fork, so that no connection
is ever shared between processes.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from receiver.db import Base, database_url, engine_options, set_up
from receiver.deps import Deps
from receiver.inbox.intake import Intake
from receiver.logs import configure
from receiver.settings import Settings, SettingsError
from receiver.web import pages, webhooks
from receiver.web.intake_counts import IntakeCounts
from receiver.web.worker_watch import WorkerWatch

db = SQLAlchemy(model_class=Base)
"""Flask-SQLAlchemy on our own declarative base: the pages' engine and, in a shell, `db.session`."""


def create_app(deps: Deps | None = None) -> Flask:
    """The application of one process. Without ``deps`` they are built from the environment.

    Raises SettingsError with every fault of the environment.
    """
    mounts_demo = deps is None and bool(os.environ.get("RECEIVER_DEMO_BOOK"))
    app = Flask("receiver.web", static_folder=None)
    settings = deps.settings if deps is not None else _settings()
    app.config["SQLALCHEMY_DATABASE_URI"] = database_url(settings.database_url)
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = engine_options(application="receiver-web")
    db.init_app(app)
    if deps is None:
        with app.app_context():
            deps = Deps.build(settings, engine=set_up(db.engine))
    _part_at_fork(deps)
    app.extensions["receiver"] = deps
    app.extensions["intake"] = Intake(deps)
    app.extensions["intake_counts"] = IntakeCounts(deps)
    app.extensions["worker_watch"] = WorkerWatch(deps)
    app.register_blueprint(webhooks.blueprint)
    if mounts_demo:
        _mount_demo(app)
    # Before the pages, which put the proxy's word in front: the door must hear it too.
    app.wsgi_app = webhooks.Door(app)  # type: ignore[method-assign]
    pages.register(app, deps)
    return app


def _mount_demo(app: Flask) -> None:
    """The demo provider's API, where `receiver up` asks for it."""
    from receiver.simulator.demo_api import demo_api
    from receiver.simulator.demo_book import DemoBook

    book = DemoBook(Path(os.environ["RECEIVER_DEMO_BOOK"]))
    app.register_blueprint(demo_api(book, os.environ.get("RECEIVER_DEMO_API_KEY", "")))


def _part_at_fork(deps: Deps) -> None:
    """Let a forked process open its own connections, whatever its parent did with its own."""
    engines = [weakref.ref(engine) for engine in (deps.engine, deps.intake_engine)]

    def forget() -> None:
        for reference in engines:
            engine = reference()
            if engine is not None:
                # Not closed: the parent's sessions would end with them.
                engine.dispose(close=False)

    os.register_at_fork(after_in_child=forget)


def _settings() -> Settings:
    settings = Settings.from_env(os.environ)
    if not settings.secret_key:
        raise SettingsError(["SECRET_KEY is not set: give a long random text, the same on every machine"])
    configure(settings.log_level)
    return settings

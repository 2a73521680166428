"""gunicorn's settings: `gunicorn -c python:receiver.web.gunicorn 'receiver.app:create_app()'`.

gevent workers: thousands of waiting requests cost little, and the requests of a process share one
statement. The master imports nothing of the application, so that each worker opens its own
connections after the fork. With `--preload` it does, and then gevent must come first.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

if "--preload" in [*sys.argv, *shlex.split(os.environ.get("GUNICORN_CMD_ARGS", ""))]:
    # Locks that the application makes before the workers' own patching would be the system's: one
    # request waiting for another's would stop its whole process.
    from gevent import monkey

    monkey.patch_all()

bind = f"{os.environ.get('HOST', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
worker_class = "gevent"
worker_connections = 1000
preload_app = False
keepalive = 15
timeout = 60
graceful_timeout = 20
limit_request_line = 4094
limit_request_fields = 100
limit_request_field_size = 16384
forwarded_allow_ips = "127.0.0.1,::1"
accesslog = None
errorlog = "-"
loglevel = "warning"
control_socket_disable = True
proc_name = "receiver"


def post_fork(_arbiter: Any, _worker: Any) -> None:
    """One connection a turn: gevent takes a hundred at once otherwise, and whichever worker wakes
    first serves all of a provider's kept connections while the others idle.
    """
    from gevent.baseserver import BaseServer

    BaseServer.max_accept = 1


def post_worker_init(worker: Any) -> None:
    """Let each process look at the workers: with none left, nobody else would tell."""
    extensions = getattr(getattr(worker, "wsgi", None), "extensions", {})
    if "worker_watch" in extensions:
        extensions["worker_watch"].start()


def worker_exit(_arbiter: Any, worker: Any) -> None:
    """Write what the process counted in its last second."""
    extensions = getattr(getattr(worker, "wsgi", None), "extensions", {})
    if "worker_watch" in extensions:
        extensions["worker_watch"].close()
    if "intake_counts" in extensions:
        extensions["intake_counts"].close()

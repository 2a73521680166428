"""The worker: APScheduler over the timetable. `python worker.py`, any number of them."""

import os
import sys

from receiver.db import make_worker_engine
from receiver.deps import Deps
from receiver.logs import configure
from receiver.settings import Settings, SettingsError
from receiver.timetable import run


def main() -> int:
    """Read the settings, then run until SIGTERM."""
    try:
        settings = Settings.from_env(os.environ)
    except SettingsError as error:
        print("\n".join(error.faults), file=sys.stderr)
        return 2
    configure(settings.log_level)
    deps = Deps.build(settings, engine=make_worker_engine(settings.database_url))
    run(deps, lambda: Settings.from_env(os.environ))
    return 0


if __name__ == "__main__":
    sys.exit(main())

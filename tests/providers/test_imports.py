"""Importing one provider never imports what another one needs."""

from __future__ import annotations

import json
import subprocess
import sys

CERTIFIED = {"bkash", "midtrans_snapbi", "paypal"}

SCRIPT = """\
import json, os, sys
from receiver.providers.registry import names, provider
for name in sorted(names()):
    if os.fork() == 0:
        before = set(sys.modules)
        provider(name)
        new = {module.split(".")[0] for module in set(sys.modules) - before}
        found = sorted(new - set(sys.stdlib_module_names) - {"receiver"})
        os.write(1, (json.dumps([name, found]) + "\\n").encode())
        os._exit(0)
    os.wait()
"""


def test_only_who_verifies_certificates_loads_cryptography() -> None:
    """Each provider alone in a process: HMAC needs the standard library, certificates `cryptography`."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    loaded = dict(json.loads(line) for line in run.stdout.splitlines())

    assert len(loaded) > 20
    assert {name for name, modules in loaded.items() if "cryptography" in modules} == CERTIFIED
    assert {name: modules for name, modules in loaded.items() if name not in CERTIFIED and modules} == {}

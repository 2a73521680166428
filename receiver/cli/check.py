"""`receiver check`: the doctor at the shell."""

from __future__ import annotations

import click
from rich.text import Text

from receiver.cli.desk import desk
from receiver.cli.doctor import Finding, examine
from receiver.cli.output import console, json_option, print_json
from receiver.settings import SettingsError

SIGNS = {"ok": ("ok   ", "green"), "note": ("note ", "yellow"), "fault": ("FAULT", "bold red")}


@click.command()
@json_option
def check(as_json: bool) -> None:
    """Look for what is wrong; ends with code 1 on a fault."""
    try:
        with desk() as deps:
            findings = examine(deps)
    except SettingsError as error:
        findings = [Finding("settings", "fault", text) for text in error.faults]
    faults = sum(finding.verdict == "fault" for finding in findings)
    if as_json:
        print_json(
            {
                "faults": faults,
                "findings": [{"about": f.about, "verdict": f.verdict, "text": f.text} for f in findings],
            }
        )
    else:
        _print(findings, faults)
    if faults:
        raise click.exceptions.Exit(1)


def _print(findings: list[Finding], faults: int) -> None:
    out = console()
    width = max(len(finding.about) for finding in findings)
    for finding in findings:
        sign, style = SIGNS[finding.verdict]
        line = Text.assemble((sign, style), f"  {finding.about.ljust(width)}  {finding.text}")
        out.print(line, soft_wrap=True)
    out.print(Text(f"{faults} faults" if faults != 1 else "1 fault"), soft_wrap=True)

"""What deploy/ ships for watching: rules that promtool proves, and queries that ask for names we export."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.orm import Session

from receiver.alert_settings import AlertSettings, Channel
from receiver.app import create_app
from tests.conftest import MakeDeps
from tests.factories import NOW, make_alert, make_event, make_minute
from tests.web.conftest import token  # noqa: F401 (a fixture)

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = sorted((DEPLOY / "prometheus").glob("*.yml"))
RULE_TESTS = sorted((DEPLOY / "prometheus" / "tests").glob("*.yml"))
DASHBOARD = DEPLOY / "grafana" / "receiver.json"

OF_PROMETHEUS = {"instance", "pod", "le"}
"""Labels that the scrape adds, and the one of buckets."""

PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: .ci/run fetches it")
@pytest.mark.parametrize(
    "words",
    [("check", "rules", *map(str, RULES)), ("test", "rules", *map(str, RULE_TESTS))],
    ids=["check", "test"],
)
def test_promtool_proves_the_rules(words: tuple[str, ...]) -> None:
    """The rules can be read, and fire when they should and not otherwise."""
    assert PROMTOOL
    done = subprocess.run([PROMTOOL, *words], capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def _queries() -> Iterator[tuple[str, str]]:
    for path in RULES:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                yield f"rule {rule['alert']}", rule["expr"]
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            yield f"panel {panel['title']} {target['refId']}", target["expr"]


QUERIES = dict(_queries())


@pytest.fixture
def exported(make_deps: MakeDeps, session: Session, token: object) -> dict[str, set[str]]:  # noqa: F811
    """Every exported sample's name, with its labels."""
    make_event(session, give_up_at=NOW + timedelta(hours=1))
    make_event(session, state="failed")
    for result in ("new", "rejected", "applied", "failed"):
        make_minute(session, result=result, buckets=[1] * 13, total_ms=5)
    make_alert(session)
    session.commit()
    deps = make_deps(alerts=AlertSettings(channels=(Channel("CHAT_URL", ""),)))
    client: FlaskClient = create_app(deps).test_client()
    answer = client.get("/metrics", headers=token("metrics"))  # type: ignore[operator]
    assert answer.status_code == 200
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_query_asks_for_what_is_exported(exported: dict[str, set[str]]) -> None:
    """Names of metrics and of labels in rules and dashboard are names that /metrics gives."""
    assert len(QUERIES) > 25
    for where, query in QUERIES.items():
        names = set(re.findall(r"\bwebhook_\w+", query))
        assert names, f"{where} asks for nothing of ours"
        assert names <= set(exported), where
        labels = set(re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", query))
        for listed in re.findall(r"\b(?:by|without)\s*\(([^)]*)\)", query):
            labels |= {label.strip() for label in listed.split(",")}
        assert labels <= OF_PROMETHEUS | set().union(*(exported[name] for name in names)), where


def test_labels_are_few(exported: dict[str, set[str]]) -> None:
    """Only labels whose values are ours to choose: settings, states and codes, never ids or references."""
    allowed = {
        "source",
        "result",
        "outcome",
        "state",
        "reason",
        "why",
        "kind",
        "key",
        "level",
        "channel",
        "le",
    }

    assert set().union(*exported.values()) <= allowed


def test_the_rates_are_the_promised_ones() -> None:
    """Both twins look at more than ten a second over five minutes, for ten minutes."""
    (path,) = RULES
    rules = {
        rule["alert"]: rule
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    }
    for name, metric in (
        ("WebhookInboxDLQRateHigh", "webhook_events_failed_total"),
        ("WebhookDLQRateHigh", "webhook_deliveries_failed_total"),
    ):
        assert f"rate({metric}[5m])" in rules[name]["expr"]
        assert rules[name]["expr"].endswith("> 10")
        assert rules[name]["for"] == "10m"

"""Pictures: pure drawings from steps; what they show is in their words too."""

from __future__ import annotations

import doctest
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receiver.inbox.history import SPANS, Span, Step
from receiver.web import drawing, events_csv, oidc
from receiver.web.drawing import HEIGHT, STEP, nice
from receiver.web.pictures import (
    Picture,
    backlog_picture,
    oldest_picture,
    reason_bars,
    results_picture,
    times_picture,
)
from receiver.web.wording import duration
from tests.factories import NOW

HOUR = SPANS["1h"]


def _steps(span: Span = HOUR) -> list[Step]:
    return [Step(NOW - span.length + number * span.step) for number in range(span.steps)]


def _all(steps: list[Step], span: Span = HOUR) -> list[Picture]:
    return [
        results_picture(steps, span),
        times_picture(steps, span, duration),
        backlog_picture(steps, span),
        oldest_picture(steps, span, duration),
    ]


@pytest.mark.parametrize("module", [drawing, events_csv, oidc])
def test_the_examples_hold(module: object) -> None:
    """Examples in docstrings are true."""
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(SPANS))
def test_an_empty_picture_says_so(name: str) -> None:
    """Nothing to show is no fault: the frame, the words, and that nothing was noted."""
    for picture in _all(_steps(SPANS[name]), SPANS[name]):
        assert picture.is_empty
        assert ElementTree.fromstring(str(picture.drawing)) is not None
        assert len(picture.times) == 3


def test_a_picture_is_named_for_those_who_do_not_see_it() -> None:
    """An image with the title and the sentence of the page; each column says its numbers."""
    steps = _steps()
    steps[-1].counts = {"applied": 40, "dead": 2, "received": 42}
    picture = results_picture(steps, HOUR)

    assert picture.summary == (
        "In the last hour: 42 received; 40 applied, 0 changed nothing, 2 dead, 0 rejected."
    )
    svg = ElementTree.fromstring(str(picture.drawing))
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-labelledby"] == "results-title"
    assert svg.attrib["aria-describedby"] == "results-summary"
    titles = [title.text for title in svg.iter("title")]
    assert len(titles) == 60
    assert titles[-1] == "11:59 UTC: 40 applied, 2 dead"
    assert titles[0] == "11:00 UTC: nothing"


def test_bars_are_per_minute_whatever_the_step() -> None:
    """Thirty in a step of fifteen minutes are two a minute."""
    span = SPANS["24h"]
    steps = _steps(span)
    steps[3].counts = {"applied": 30}
    assert results_picture(steps, span).scale == ("2", "1", "0")


def test_few_dead_among_many_are_still_seen() -> None:
    """A bar that is there is never thinner than can be seen."""
    steps = _steps()
    steps[0].counts = {"applied": 100_000, "dead": 1}
    svg = ElementTree.fromstring(str(results_picture(steps, HOUR).drawing))
    dead = [rect for rect in svg.iter("rect") if rect.attrib["class"] == "dead"]
    assert [float(rect.attrib["height"]) for rect in dead] == [1.5]


def test_lines_break_where_nothing_is_known() -> None:
    """A step without applied events is a gap, and one alone is still a line."""
    steps = _steps()
    steps[2].percentiles = {0.5: 50, 0.95: 250, 0.99: 60_000}
    steps[5].percentiles = {0.5: 50, 0.95: 50, 0.99: 50}
    picture = times_picture(steps, HOUR, duration)
    assert str(picture.drawing).count("M20 ") == 3
    assert str(picture.drawing).count("M50 ") == 3
    assert [mark.number for mark in picture.legend] == ["≤ 50 ms"] * 3


def test_levels_that_nobody_noted_are_no_zeros() -> None:
    """The column says that no worker looked."""
    steps = _steps()
    steps[-2].waiting, steps[-2].parked, steps[-2].held, steps[-2].dead = 5, 0, 1, 0
    steps[-2].oldest_seconds = 30
    backlog, oldest = backlog_picture(steps, HOUR), oldest_picture(steps, HOUR, duration)
    assert "11:58 UTC: 5 waiting, 0 parked, 1 held" in backlog.drawing
    assert "11:59 UTC: no worker looked" in backlog.drawing
    assert "11:58 UTC: oldest 30 s" in oldest.drawing
    assert not backlog.is_empty


_count = st.integers(0, 10**9)


@given(
    st.lists(
        st.tuples(
            _count, _count, _count, st.none() | st.integers(0, 10**8), st.none() | st.integers(1, 10**8)
        ),
        min_size=60,
        max_size=60,
    )
)
def test_no_shape_leaves_its_frame(rows: list[tuple[int, int, int, int | None, int | None]]) -> None:
    """Whatever the numbers, every shape is well-formed and stands inside."""
    steps = _steps()
    for step, (one, two, three, oldest, ms) in zip(steps, rows, strict=True):
        step.counts = {"applied": one, "dead": two, "rejected": three}
        step.waiting, step.parked, step.held, step.dead = one, two, three, 0
        step.oldest_seconds = oldest
        step.percentiles = {} if ms is None else {0.5: ms, 0.95: ms * 2, 0.99: ms * 3}
    for picture in _all(steps):
        svg = ElementTree.fromstring(str(picture.drawing))
        for rect in svg.iter("rect"):
            top, tall = float(rect.attrib.get("y", 0)), float(rect.attrib["height"])
            assert top >= 0
            assert top + tall <= HEIGHT + 0.2
            assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= STEP * 60


@given(st.floats(0, 1e15))
def test_an_axis_holds_its_values(value: float) -> None:
    """The top of a scale is never below what is drawn, and at most two and a half times as much."""
    assert value <= nice(value) <= max(1, value * 2.5 + 1e-9)


def test_bars_of_reasons_are_in_order_and_lead_somewhere() -> None:
    """The most frequent first; a bound is said."""
    bars = reason_bars({"amount": 2, "currency": 10}, lambda reason: f"/failures?reason={reason}", more=True)
    assert [(bar.name, bar.shown, bar.href) for bar in bars] == [
        ("currency", "10+", "/failures?reason=currency"),
        ("amount", "2+", "/failures?reason=amount"),
    ]

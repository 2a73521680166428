"""Shapes of pictures as SVG: bars, stairs, columns that say their numbers; and the scales' figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

HEIGHT = 100
"""A drawing's own height; its width is STEP a step. The page stretches it to its place."""

STEP = 10


def nice(value: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below ``value``; at least 1.

    >>> [nice(value) for value in (0, 0.3, 1, 3, 7, 42, 1200)]
    [1, 1, 1, 5, 10, 50, 2000]
    """
    if value <= 1:
        return 1
    power: float = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def figure(value: float) -> str:
    """A number of an axis, short.

    >>> [figure(value) for value in (0.5, 20, 2500, 5000000)]
    ['0.5', '20', '2.5k', '5M']
    """
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def svg(key: str, names: Sequence[str], shapes: Markup, words: Callable[[int], str]) -> Markup:
    """The drawing: a grid, the shapes, and over them one column a step that says its numbers on hover."""
    width = STEP * len(names)
    columns = Markup("").join(
        Markup('<rect class="column" x="{}" width="{}" height="{}"><title>{}: {}</title></rect>').format(
            number * STEP, STEP, HEIGHT, name, words(number)
        )
        for number, name in enumerate(names)
    )
    grid = Markup("").join(
        Markup('<path class="grid" d="M0 {0}H{1}"/>').format(y, width) for y in (0, HEIGHT // 2, HEIGHT)
    )
    return Markup(
        '<svg class="picture" role="img" aria-labelledby="{0}-title" aria-describedby="{0}-summary"'
        ' viewBox="0 0 {1} {2}" preserveAspectRatio="none">{3}{4}{5}</svg>'
    ).format(key, width, HEIGHT, grid, shapes, columns)


def bars(rows: Sequence[Sequence[float]], tones: Sequence[str], top: float) -> Markup:
    """Stacked bars, the first tone at the bottom. What is there is never thinner than can be seen."""
    drawn = []
    for number, row in enumerate(rows):
        floor = float(HEIGHT)
        for tone, value in zip(tones, row, strict=True):
            if value <= 0:
                continue
            tall = min(max(HEIGHT * value / top, 1.5), floor)
            floor -= tall
            drawn.append(
                Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
                    tone, number * STEP + 1, _number(floor), STEP - 2, _number(tall)
                )
            )
    return Markup("").join(drawn)


def stairs(heights: Sequence[float | None], tone: str) -> Markup:
    """A line in steps, with gaps where nothing is known."""
    drawn, before = [], None
    for number, height in enumerate(heights):
        if height is not None:
            y = _number(min(max(HEIGHT - height, 0.0), HEIGHT))
            drawn.append(
                f"{'M' + str(number * STEP) + ' ' + y if before is None else 'V' + y}H{(number + 1) * STEP}"
            )
        before = height
    return Markup('<path class="line {}" d="{}"/>').format(tone, "".join(drawn))


def bar(share: float) -> Markup:
    """One lying bar of a list; the number beside it says what it shows."""
    return Markup(
        '<svg class="bar-of" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="dead" width="{}" height="10"/></svg>'
    ).format(_number(max(share * 100, 1)))


def _number(value: float) -> str:
    return f"{value:.4g}"

"""Charts as inline SVG without text: what has to be read stands beside them, in the page's own letters."""

from __future__ import annotations

from collections.abc import Sequence

from photon.report.markup import Markup, element

_HEIGHT = 100.0


def columns_plot(values: Sequence[float], told: str, names: Sequence[str]) -> Markup:
    """One column for each value, of which ``names`` says what it is when it is pointed at; ``told`` is for those who
    do not see it."""
    top = max(values, default=0) or 1
    gap = min(0.06, 0.0015 * len(values))  # on each side: about the same on the page, however many there are
    columns = []
    for number, (value, name) in enumerate(zip(values, names, strict=True)):
        # Whatever there is shows, however little of the highest it is.
        height = max(_HEIGHT * value / top, 1.5) if value else 0.0
        bar = element(
            "rect", x=_short(number + gap), y=_short(_HEIGHT - height), width=_short(1 - 2 * gap), height=_short(height)
        )
        # The whole height can be pointed at.
        space = element("rect", class_="space", x=number, y=0, width=1, height=_HEIGHT)
        columns.append(element("g", element("title", name), space, bar))
    return element(
        "svg",
        *columns,
        class_="plot",
        viewBox=f"0 0 {len(values)} {_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=told,
    )


def share_bar(share: float) -> Markup:
    """A thin bar for a cell of a table whose number stands beside it."""
    return element("span", element("span", style=f"width:{100 * share:.1f}%"), class_="share", aria_hidden="true")


def _short(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")

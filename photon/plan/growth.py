"""An input held against the plan that was made of it: what came to it since, and what must not have changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from photon.data.files import is_remote
from photon.data.unit import Unit, changed
from photon.errors import UsageError
from photon.plan.plan import ENDLESS, Plan, Span


@dataclass(frozen=True, slots=True)
class Growth:
    """``units``: new or grown ones by their numbers in the plan, with the ``spans`` of their rows. ``replaced``: others
    under their old names. ``gone``: planned ones that are not there any more."""

    units: tuple[tuple[int, Unit], ...] = ()
    spans: tuple[Span, ...] = ()
    gone: tuple[Unit, ...] = ()
    replaced: tuple[tuple[int, Unit], ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to add to the plan. A file that grew beyond a limit is nothing."""
        return bool(self.spans or self.replaced)

    @property
    def changes(self) -> tuple[tuple[int, Unit], ...]:
        """All units that are new to the plan, by their numbers."""
        return (*self.replaced, *self.units)

    @property
    def rows(self) -> int:
        return sum(span.rows for span in self.spans)

    def applied(self, plan: Plan) -> Plan:
        """The plan with what came to it."""
        units = list(plan.units)
        for number, unit in self.changes:
            units[number : number + 1] = [unit]
        return replace(plan, units=units, spans=[*plan.spans, *self.spans], generations=plan.generations + 1)


def growth_of(
    plan: Plan, now: Sequence[Unit], limit: int | None, may_be_new: Callable[[int], bool] = lambda number: False
) -> Growth:
    """What ``now`` has beyond ``plan``, up to ``limit`` rows in all. ``may_be_new``: whether a unit of the plan may be
    another one now. Raises ``UsageError`` where a planned file was changed or is not named any more, or fewer rows are
    asked for than were planned."""
    if limit is not None and plan.rows is not None and limit < plan.rows:
        raise UsageError(
            f"the results are of a plan of {plan.rows:,} rows, and {limit:,} are asked for; leave the limit out, "
            "choose another output.dir, or start over with --fresh"
        )
    if plan.is_endless:
        return Growth()
    numbers = {(unit.root, unit.name): number for number, unit in enumerate(plan.units)}
    found: list[tuple[int, Unit]] = []
    new = len(plan.units)
    replaced: list[tuple[int, Unit]] = []
    changed_ones: list[Unit] = []
    for unit in now:
        number = numbers.pop((unit.root, unit.name), None)
        if number is None:
            found.append((new, unit))
            new += 1
        elif not unit.is_same_as(plan.units[number]):
            if unit.grew_from(plan.units[number]):
                found.append((number, unit))
            elif may_be_new(number):
                replaced.append((number, unit))
            else:
                changed_ones.append(unit)
    if changed_ones:
        raise changed(changed_ones, mendable=plan.reader == "folder")
    gone = [plan.units[number] for number in sorted(numbers.values())]
    _check_gone(gone)
    grown = Growth(tuple(found)).applied(plan) if found else plan
    return Growth(tuple(found), tuple(_new_spans(plan, grown.units, limit)), tuple(gone), tuple(replaced))


def _check_gone(units: Sequence[Unit]) -> None:
    there = [unit for unit in units if is_remote(unit.name) or os.path.lexists(unit.path)]
    if there:
        more = f" and {len(there) - 1:,} more" if len(there) > 1 else ""
        raise UsageError(
            f"the plan has {there[0].path}{more}, which the manifest's input does not name any more; name it again, "
            "choose another output.dir, or start over with --fresh"
        )


def _new_spans(plan: Plan, units: Sequence[Unit], limit: int | None) -> list[Span]:
    """The rows of ``units`` that no span of ``plan`` holds, in the order of the units."""
    planned = sum(span.rows for span in plan.spans)
    if plan.reader == "folder":
        spans = [Span(planned, 0, len(units) - planned)] if len(units) > planned else []
    else:
        stops: dict[int, int] = {}
        for span in plan.spans:
            stops[span.unit] = max(span.stop, stops.get(span.unit, 0))
        starts = [(number, stops.get(number, 0), unit.rows or 0) for number, unit in enumerate(units)]
        spans = [Span(number, start, stop) for number, start, stop in starts if stop > start]
    left = (ENDLESS if limit is None else limit) - planned
    cut = []
    for span in spans:
        if left > 0:
            cut.append(Span(span.unit, span.start, min(span.stop, span.start + left)))
            left -= span.rows
    return cut

"""What operators read of a rehearsal or an import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from extras.moving_in.engine.tally import Reason, Tally


def lines(tallies: Mapping[str, Tally], *, is_rehearsal: bool) -> Iterator[str]:
    """A table of counts, then the reasons by step, the most frequent first, each with its first rows."""
    yield f"{'':<28}{'read':>12}{'taken':>12}{'changed':>12}{'left':>12}{'seconds':>10}"
    for name, tally in tallies.items():
        changed = "" if is_rehearsal else f"{tally.nchanged:,}"
        yield f"{name:<28}{tally.nread:>12,}{tally.ntaken:>12,}{changed:>12}{tally.nleft:>12,}{tally.secs:>10.1f}"
    for name, tally in tallies.items():
        yield from _reasons(name, "left", tally.left)
        yield from _reasons(name, "notes", tally.told)


def _reasons(name: str, what: str, reasons: Mapping[str, Reason]) -> Iterator[str]:
    if not reasons:
        return
    yield ""
    yield f"{name}, {what}:"
    for reason, found in sorted(reasons.items(), key=lambda item: -item[1].count):
        more = ", …" if found.count > len(found.examples) else ""
        yield f"  {found.count:>10,}  {reason} ({', '.join(found.examples)}{more})"

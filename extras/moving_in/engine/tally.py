"""What an import counts: rows read, taken, changed here, and left out or altered with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from extras.moving_in.engine.texts import storable

EXAMPLES: Final = 5
MAX_EXAMPLE_CHARS: Final = 60
MAX_REASONS: Final = 200


@dataclass(slots=True)
class Reason:
    """How many rows have it, and the first of them."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: object, count: int = 1) -> None:
        self.count += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(storable(str(example))[:MAX_EXAMPLE_CHARS])


@dataclass(slots=True)
class Tally:
    """Of one step, which took ``secs``.

    ``left``: rows that were not taken, by reason. ``told``: what an operator has to know of others.

    A reason is a sentence that many rows share; what differs between them is the example.
    """

    nread: int = 0
    ntaken: int = 0
    nchanged: int = 0
    secs: float = 0.0
    left: dict[str, Reason] = field(default_factory=dict)
    told: dict[str, Reason] = field(default_factory=dict)

    def leave(self, reason: str, example: object, count: int = 1) -> None:
        """Rows are not taken."""
        _of(self.left, reason).add(example, count)

    def tell(self, reason: str, example: object, count: int = 1) -> None:
        """Rows are taken otherwise than they are, or something else is to be told."""
        _of(self.told, reason).add(example, count)

    def add(self, other: Tally) -> None:
        self.nread += other.nread
        self.ntaken += other.ntaken
        self.nchanged += other.nchanged
        self.secs += other.secs
        for mine, others in ((self.left, other.left), (self.told, other.told)):
            for name, reason in others.items():
                sum_ = _of(mine, name)
                sum_.count += reason.count
                sum_.examples = (sum_.examples + reason.examples)[:EXAMPLES]

    @property
    def nleft(self) -> int:
        return sum(reason.count for reason in self.left.values())

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Tally:
        found = cls(*(stored.get(name, 0) for name in ("nread", "ntaken", "nchanged")))
        found.secs = stored.get("secs", 0.0)
        for kind, reasons in (("left", found.left), ("told", found.told)):
            reasons.update({name: Reason(**reason) for name, reason in stored.get(kind, {}).items()})
        return found


def _of(reasons: dict[str, Reason], name: str) -> Reason:
    if name not in reasons and len(reasons) >= MAX_REASONS:
        name = "other reasons"
    return reasons.setdefault(name, Reason())

"""Numbers from all of what a double can be, and texts that are none, as clients may send them."""

from __future__ import annotations

from typing import Final

NUMBERS: Final = (
    "5e-324", "2.2e-308", "1e-300", "1e-160", "1e-30", "9.9e-7", "1e-6", "0.1", "1", "86400", "1e10", "1e11", "1e12",
    "1e18", "1e25", "1e160", "1e304", "1.7976931348623157e308", "1e400", "0", "-0.0", "-5e-324", "-1", "-1e304",
    "nan", "inf", "-inf", "0x10", "1_0", "",
)  # fmt: skip

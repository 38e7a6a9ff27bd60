"""Compile the functions of the kernel with Numba, where the compiled kernel exists (emulator.engine.kernel.built).

Elsewhere, and with NUMBA_DISABLE_JIT=1, the same functions can run uncompiled: slowly, for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np

from emulator.engine.kernel.built import is_wanted
from emulator.engine.uncompiled import Rows

_Function = TypeVar("_Function", bound=Callable[..., Any])

IS_COMPILED: Final = is_wanted()


def compiled(function: _Function) -> _Function:
    """Returns the function, compiled when it is first called; itself where nothing is compiled. It cannot create
    arrays: references to its arguments are not counted, which would take longer than the work.
    """
    return _compiled(function, counts_uses=False)


def making_arrays(function: _Function) -> _Function:
    """The same for a function that creates arrays."""
    return _compiled(function, counts_uses=True)


def _array_of_rows(count: int, dtype: np.dtype[np.void]) -> Any:
    return np.zeros(count, dtype)


def zero_rows(count: int, dtype: np.dtype[np.void]) -> Any:
    """Rows of zeros."""
    return Rows(dtype, (count,))


def _compiled(function: _Function, *, counts_uses: bool) -> _Function:
    if not IS_COMPILED:
        return function
    from numba import njit, types

    made: Any = njit(cache=True, nogil=True, _nrt=counts_uses)(function)
    template = made.get_call_template

    def of_any_number(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return template(tuple(types.unliteral(arg) for arg in args), kws)

    # Otherwise there would be another version for each constant that it is called with.
    made.get_call_template = of_any_number
    return cast(_Function, made)


if IS_COMPILED:
    zero_rows = making_arrays(_array_of_rows)

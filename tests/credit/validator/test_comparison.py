"""Comparisons of outputs: bit by bit, within a tolerance, by a project's function."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from pytest_django import Settings

from credit.models import App
from credit.validator import comparison
from credit.validator.comparison import (
    ComparisonError,
    Delivered,
    UnfitOutputError,
    WithinTolerance,
    agree,
    comparer_of,
    delivered,
    to_the_bit,
)


@pytest.fixture(autouse=True)
def storage(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def result(id_: int, *texts: bytes) -> Delivered:
    files = []
    for number, text in enumerate(texts):
        path = default_storage.save(f"{id_}_{number}", ContentFile(text))
        files.append({"name": f"r{id_}_{number}", "path": path, "nbytes": len(text), "md5": str(hash(text))})
    return delivered(id_, str(hash(texts)).rjust(16)[:16].encode(), files)


def within(relative: float = 1e-5, absolute: float = 0.0) -> WithinTolerance:
    return WithinTolerance(relative, absolute)


def test_to_the_bit_only_digests_count_and_none_is_none() -> None:
    a, b = delivered(1, b"a" * 16, []), delivered(2, b"a" * 16, [])
    assert agree(to_the_bit, a, b)
    assert not agree(to_the_bit, a, delivered(3, b"b" * 16, []))
    unknown = delivered(4, None, [])
    assert not agree(to_the_bit, unknown, unknown)


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        (b"1.0 2.0\n", b"1.000001, 2.0", True),  # 1e-6 relative
        (b"1.0", b"1.0001", False),  # 1e-4
        (b"energy 5", b"energy 5.00000001", True),
        (b"energy 5", b"entropy 5", False),
        (b"1 2", b"1 2 3", False),
        (b"1", b"one", False),
        (b"0", b"1e-9", False),  # relative to the larger one there is no nearness to 0
    ],
)
def test_numbers_may_differ_by_the_relative_tolerance(left: bytes, right: bytes, is_equal: bool) -> None:
    assert agree(within(), result(1, left), result(2, right)) is is_equal


def test_near_zero_the_absolute_tolerance_counts() -> None:
    assert agree(within(absolute=1e-6), result(1, b"0"), result(2, b"1e-9"))


def test_every_file_counts_and_files_are_told_apart_by_number() -> None:
    assert not agree(within(), result(1, b"1", b"2"), result(2, b"1", b"3"))
    assert not agree(within(), result(1, b"1", b"2"), result(2, b"1"))
    both = result(1, b"1", b"2")
    turned = Delivered(2, b"t" * 16, tuple(reversed(result(2, b"1.0", b"2.0").outputs)))
    assert agree(within(), both, turned)


@pytest.mark.parametrize("text", [b"1 nan", b"inf", b"-Infinity"])
def test_a_diverged_computation_agrees_with_nothing_not_even_itself(text: bytes) -> None:
    one = result(1, text)
    assert not agree(within(), one, one)


def test_a_missing_file_makes_its_result_unfit_and_no_other() -> None:
    lost = result(1, b"1")
    default_storage.delete(lost.outputs[0].path)
    assert not agree(within(), lost, lost)
    assert agree(within(), result(2, b"1"), result(3, b"1.0000001"))


def test_files_and_results_that_are_too_large_are_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    large = result(1, b"1 " * 600)
    monkeypatch.setattr(comparison, "MAX_FILE_BYTES", 1199)
    with pytest.raises(UnfitOutputError, match="more than 1199 bytes"):
        large.outputs[0].read()
    assert not agree(within(), large, large)
    monkeypatch.setattr(comparison, "MAX_FILE_BYTES", 1200)
    assert agree(within(), large, large)
    monkeypatch.setattr(comparison, "MAX_TOTAL_BYTES", 1199)
    assert not agree(within(), large, large)


def test_a_storage_that_fails_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    one = result(1, b"1")

    def fail(*_: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(default_storage._wrapped, "open", fail)  # type: ignore[attr-defined]  # a lazy object
    with pytest.raises(ComparisonError, match="OSError: the disk is gone"):
        agree(within(), one, one)


def same_length(first: Delivered, second: Delivered) -> bool:
    """A project's own comparison."""
    return [output.nbytes for output in first.outputs] == [output.nbytes for output in second.outputs]


def broken(first: Delivered, second: Delivered) -> bool:
    raise ZeroDivisionError("of all things")


def test_a_projects_function_is_asked(settings: Settings) -> None:
    settings.APP_FUNCTIONS = [
        "nowhere.at_all",
        "credit.validator.comparison.MAX_FILES",
        "credit.validator.comparison.to_the_bit",
    ]
    app = App(comparison="custom", comparison_function=f"{__name__}.same_length")
    assert agree(same_length, result(1, b"ab"), result(2, b"cd"))
    with pytest.raises(ComparisonError, match="cannot be used: No module"):
        comparer_of(App(comparison="custom", comparison_function="nowhere.at_all"))
    with pytest.raises(ComparisonError, match="is not a function"):
        comparer_of(App(comparison="custom", comparison_function="credit.validator.comparison.MAX_FILES"))
    assert (
        comparer_of(App(comparison="custom", comparison_function="credit.validator.comparison.to_the_bit"))
        is to_the_bit
    )
    assert app.comparison_function.endswith("same_length")
    with pytest.raises(ComparisonError, match="ZeroDivisionError: of all things"):
        agree(broken, result(3, b""), result(4, b""))


@pytest.mark.parametrize("outputs", [None, 7, "text", [7], [{"path": None}], [{"name": "x_99999"}], [{}] * 200])
def test_columns_that_are_no_list_of_files_are_read_as_far_as_they_are(outputs: Any) -> None:
    files = delivered(1, b"short", outputs)
    assert files.digest is None
    assert len(files.outputs) <= comparison.MAX_FILES


@pytest.mark.parametrize(
    "outputs",
    [
        7,
        [7],
        [{"name": "r_0", "path": "x", "nbytes": "many", "md5": "m"}],
        [{"name": "r_0", "path": "x", "nbytes": -1, "md5": "m"}],
        [{"name": f"r_{n}", "path": "x", "nbytes": 1, "md5": "m"} for n in range(comparison.MAX_FILES + 1)],
    ],
)
def test_a_result_whose_list_of_files_is_not_whole_is_fit_for_nothing(outputs: Any) -> None:
    strange = delivered(1, b"d" * 16, outputs)
    assert strange.digest is None
    assert not agree(within(), strange, strange)


def test_files_are_compared_word_by_word_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MAX_FILE_BYTES", 1_000_000)
    left, right = result(1, b"1.5 " * 200_000), result(2, b"1.5\n" * 199_999 + b"1.6")
    tracemalloc.start()
    assert not agree(within(), left, right)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 0.8 MB each, and room for 1 MB while one is read; twice 200,000 numbers of Python's would take 13 MB.
    assert most < 5e6


@pytest.mark.parametrize("name", ["os.system", "credit.validator.comparison.to_the_bit"])
def test_a_function_that_nobody_registered_is_not_called_whatever_the_database_says(name: str) -> None:
    with pytest.raises(ComparisonError, match=f"{name} is not registered on this server"):
        comparer_of(App(comparison="custom", comparison_function=name))

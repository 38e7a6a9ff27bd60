"""Certificates as PDF files and pictures: what is on them, in which letters, and where it stands."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image
from pypdfium2 import PdfDocument

from accounting.certificates import files, layout
from accounting.certificates.texts import CertificateText, shown
from accounting.drawing import fonts, qr

AT = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
CODE = "7KQ49XMZ2B3CDEFG"


def words(name: str, **facts: Any) -> CertificateText:
    return shown(
        {
            "made_on": "2026-11-23",
            "first": "2025-01-01",
            "last": "2026-11-22",
            "about": {"kind": "all"},
            "name": name,
            "code": CODE,
            "facts": {"estimated_credits": 1_234_567, "tasks": 42, **facts},
        }
    )


@pytest.mark.parametrize(
    "name", ["Jürgen Straße", "Ελένη", "Дмитрий Шостакович", "Nguyễn", "王小明", "ゆきこ", "홍길동"]
)
def test_a_pdf_file_says_everything_in_its_own_fonts(name: str) -> None:
    content = files.pdf(words(name), AT)
    document = PdfDocument(content)
    assert len(document) == 1
    text = document[0].get_textpage().get_text_range()
    assert name in text
    assert "1\u202f234\u202f567" in text and "7KQ4-9XMZ-2B3C-DEFG" in text
    assert document.get_metadata_dict()["Subject"] == words(name).address
    assert f"/URI ({words(name).address})".encode() in content


def test_a_picture_has_the_size_of_the_sheet_and_the_qr_code_in_its_corner() -> None:
    found = words("Mara")
    picture = Image.open(io.BytesIO(files.picture(found)))
    assert picture.size == (1260, 1782)
    assert picture.info["Source"] == found.address
    side, runs = qr.runs(found.address)
    module = int(layout.QR_SIDE * files.DOTS_PER_MM / side)
    corner = (1260 - 150 - side * module, 1782 - 150 - side * module)
    dark = {(x + step, y) for x, y, length in runs for step in range(length)}
    for x in range(side):
        for y in range(side):
            shade = picture.getpixel((corner[0] + x * module + module // 2, corner[1] + y * module + module // 2))
            assert (shade == 0) == ((x, y) in dark), (x, y)


@pytest.mark.parametrize("text", ["नमस्ते", "שלום", "مرحبا", "😀", "ไทย"])
def test_letters_that_no_font_here_writes_well_are_named(text: str) -> None:
    assert fonts.unwritable(f"Mara {text}") == "".join(dict.fromkeys(text))
    assert words(f"Mara {text}").unwritable


def test_everything_stays_on_the_sheet_and_above_the_code() -> None:
    many = [f"A badge with the long name {number}, of sixty characters and more" for number in range(60)]
    longest = words("W" * 60, badges=many, computers=10**9, cpu_hours=10**15, gpu_hours=10**15, since="2019-01-01")
    for text in layout.texts(longest):
        assert text.x + layout.width_of(text.text, text.size) <= layout.WIDTH - layout.MARGIN + 0.1, text
        assert text.y + text.size * layout.POINT <= layout.HEIGHT - layout.MARGIN, text


def test_a_word_that_is_longer_than_a_line_is_cut() -> None:
    lines = layout.wrapped("W" * 100 + " end", 12, 60)
    assert "".join(lines).replace(" ", "") == "W" * 100 + "end"
    assert all(layout.width_of(line, 12) <= 60 for line in lines)


@pytest.mark.parametrize(("name", "nbadges"), [("W" * 60, 400), ("王" * 60, 1), ("", 60)])
def test_no_line_lies_on_another(name: str, nbadges: int) -> None:
    many = [f"A badge with the long name {number}, of sixty characters and more" for number in range(nbadges)]
    found = replace(words(name, badges=many), title="Zertifikat über Rechenzeit für die Wissenschaft und die Forschung")
    places = [
        (text.x, text.y, text.size * layout.POINT, layout.width_of(text.text, text.size))
        for text in layout.texts(found)
    ]
    for number, (x, y, height, width) in enumerate(places):
        for x2, y2, height2, width2 in places[:number]:
            assert not (x < x2 + width2 and x2 < x + width and y < y2 + height2 and y2 < y + height)

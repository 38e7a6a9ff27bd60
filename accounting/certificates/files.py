"""A certificate as a PDF file and as a PNG picture, both of one A4 page."""

from __future__ import annotations

import datetime as dt
import io
from typing import TYPE_CHECKING, Final

from django.conf import settings
from PIL import Image, ImageDraw
from PIL.PngImagePlugin import PngInfo

from accounting.certificates import layout
from accounting.certificates.texts import CertificateText
from accounting.drawing import fonts, qr

if TYPE_CHECKING:
    from fpdf import FPDF

DOTS_PER_MM: Final = 6
"""Of pictures: 1260 by 1782 pixels, about 150 dots per inch."""
_SANS: Final = "sans"
_CJK: Final = "cjk{}"


def pdf(shown: CertificateText, made_at: dt.datetime) -> bytes:
    """The file has its fonts in it, and the address of the check in its properties."""
    # Not imported above: importing it takes a tenth of a second at each start of a process.
    from fpdf import FPDF

    file = FPDF(format="A4", unit="mm")
    file.set_auto_page_break(False)
    file.set_title(shown.title)
    file.set_author(settings.SITE_NAME)
    file.set_subject(shown.address)
    file.set_creation_date(made_at)
    file.add_font(_SANS, fname=fonts.SANS)
    file.add_page()
    file.c_margin = 0
    known = {_SANS}
    for text in layout.texts(shown):
        family = _SANS
        if fonts.needs_cjk(text.text):
            face = fonts.cjk_face(text.text)
            family = _CJK.format(face)
            if family not in known:
                file.add_font(family, fname=fonts.CJK, collection_font_number=face)
                known.add(family)
        file.set_font(family, size=text.size)
        file.set_text_color(text.shade)
        file.set_xy(text.x, text.y)
        file.cell(text=text.text, h=text.size * layout.POINT, link=text.address)
    _draw_code(file, shown.address)
    return bytes(file.output())


def _draw_code(file: FPDF, address: str) -> None:
    side, runs = qr.runs(address)
    module = layout.QR_SIDE / side
    x0, y0 = layout.WIDTH - layout.MARGIN - layout.QR_SIDE, layout.HEIGHT - layout.MARGIN - layout.QR_SIDE
    file.set_fill_color(0)
    for x, y, length in runs:
        file.rect(x0 + x * module, y0 + y * module, length * module, module, style="F")


def picture(shown: CertificateText) -> bytes:
    """The same as a PNG."""
    image = Image.new("L", (round(layout.WIDTH * DOTS_PER_MM), round(layout.HEIGHT * DOTS_PER_MM)), 255)
    draw = ImageDraw.Draw(image)
    for text in layout.texts(shown):
        font = fonts.picture_font(text.text, round(text.size * layout.POINT * DOTS_PER_MM))
        draw.text((text.x * DOTS_PER_MM, text.y * DOTS_PER_MM), text.text, fill=text.shade, font=font, anchor="la")
    side, runs = qr.runs(shown.address)
    module = int(layout.QR_SIDE * DOTS_PER_MM / side)
    x0 = round((layout.WIDTH - layout.MARGIN) * DOTS_PER_MM) - side * module
    y0 = round((layout.HEIGHT - layout.MARGIN) * DOTS_PER_MM) - side * module
    for x, y, length in runs:
        left, top = x0 + x * module, y0 + y * module
        draw.rectangle((left, top, left + length * module - 1, top + module - 1), fill=0)
    about = PngInfo()
    about.add_text("Title", shown.title)
    about.add_text("Source", shown.address)
    file = io.BytesIO()
    image.save(file, "PNG", pnginfo=about, dpi=(DOTS_PER_MM * 25.4,) * 2)
    return file.getvalue()

"""What parsers say of wrong reports is recognised, and shown in the reader's language."""

from __future__ import annotations

import pytest
from django.utils import translation

from portal.languages import report_texts
from portal.wire.hardware import parse_hardware
from scheduler.rpc.host_record import _cuts

COPROC = b"<coproc><type>NVIDIA</type><count>5000</count></coproc>"
WRONG = (
    b"<p_fpops>fast</p_fpops>",
    b"<p_ncpus>1.5</p_ncpus>",
    b"<coprocs>" + COPROC * 100 + b"</coprocs>",
    b"<a>" * 300,
)


@pytest.mark.parametrize("inside", WRONG)
def test_faults_of_hardware_are_recognised(inside: bytes) -> None:
    faults = parse_hardware(inside).faults
    with translation.override("de"):
        assert faults
        assert [fault for fault in faults if report_texts.shown(fault) == fault] == []


def test_speeds_that_are_not_believed_are_recognised() -> None:
    [fault] = _cuts(parse_hardware(b"<p_fpops>1e15</p_fpops>"))
    with translation.override("de"):
        assert report_texts.shown(fault).startswith("p_fpops ist 1e+15 und zählt als ")


def test_other_texts_stay() -> None:
    with translation.override("de"):
        assert report_texts.shown("out_1 was not uploaded") == "out_1 wurde nicht hochgeladen"
        assert report_texts.shown("Somebody else's words") == "Somebody else's words"

"""What the XML of BOINC's tables says, as our columns have it."""

from __future__ import annotations

import pytest

from credit.engine.facts import ProcessorType
from extras.moving_in.engine import blobs, config, jobs, plan_classes
from extras.moving_in.engine.values import BrokenRow
from extras.moving_in.tests.old_work import CONFIG, PLAN_CLASSES, TEMPLATE

INFO = (
    "<file_info><name>{0}</name><upload_when_present/><max_nbytes>{1}.000</max_nbytes>"
    "<xml_signature>\nab12\n.\n</xml_signature></file_info>\n"
)


def test_files_lie_in_the_folder_of_their_digest() -> None:
    # md5("in_7") = 0539ee36…; 0x539ee36 mod 1024 = 0x236
    assert jobs.folder_of("in_7", 1024) == "236/"
    assert jobs.folder_of("in_7", 0) == ""


def test_outputs_are_by_their_numbers_and_a_gap_is_a_file_that_nobody_needs() -> None:
    xml = INFO.format("w_0_r12_2", 70) + INFO.format("w_0_r12_0", 50)
    xml += "<file_info><name>notes</name><generated_locally/></file_info>"
    xml += (
        "<result>\n<file_ref><file_name>w_0_r12_2</file_name><open_name>log</open_name><optional/></file_ref></result>"
    )
    found = jobs.outputs(xml, "w_0")
    assert [(each.number, each.name, each.is_signed) for each in found] == [
        (0, "w_0_r12_0", True),
        (2, "w_0_r12_2", True),
    ]
    first, gap, last = jobs.output_files(found)
    assert (first["max_nbytes"], first["optional"], last["open_name"], last["optional"]) == (50, False, "log", True)
    assert (gap["optional"], gap["no_validate"]) == (True, True)


def test_a_template_makes_the_outputs_of_a_job_without_results() -> None:
    assert jobs.output_files(jobs.of_template(TEMPLATE)) == [
        {"open_name": "out", "max_nbytes": 100_000, "optional": False}
    ]


def test_inputs_keep_addresses_elsewhere_and_command_lines_their_characters() -> None:
    file = "<file_info><name>{0}</name><url>{1}</url><md5_cksum>{2}</md5_cksum><nbytes>7</nbytes></file_info>\n"
    xml = file.format("a", "https://p.example.org/fold/download/1f/a", "a" * 32)
    xml += file.format("b+1", "https://data.example.org/b", "b" * 32)
    xml += "<workunit>\n<command_line>\n--x '1 &lt; 2' &amp;\n</command_line>\n"
    xml += "<file_ref><file_name>a</file_name><open_name>in</open_name></file_ref>\n"
    xml += "<file_ref><file_name>b+1</file_name></file_ref></workunit>"
    read = jobs.job_input(xml, "https://p.example.org/fold/download")
    assert read.command_line == "--x '1 < 2' &"
    assert read.files == [
        {"name": "a", "open_name": "in", "nbytes": 7, "md5": "a" * 32},
        {"name": "b+1", "open_name": "", "nbytes": 7, "md5": "b" * 32, "urls": ["https://data.example.org/b"]},
    ]


@pytest.mark.parametrize("name", ["a b", "a/b", "../a", "a<b", 'a"', "-a", "", "a\n", "é", "a" * 192])
def test_names_that_paths_or_xml_cannot_have_are_left(name: str) -> None:
    with pytest.raises(BrokenRow):
        jobs.checked_name(name, "workunit")


def test_plan_classes_say_what_has_no_place() -> None:
    found = plan_classes.read(PLAN_CLASSES)
    mt, vbox, cuda = found["mt4"], found["vbox64"], found["cuda_old"]
    assert (mt.min_ncpus, mt.max_ncpus, mt.nthreads_cmdline, mt.lost) == (2, 4, True, [])
    assert (vbox.needs_virtualbox, vbox.needs_vm_acceleration, vbox.lost) == (True, True, ["min_android_version"])
    assert (vbox.min_virtualbox_version, vbox.excluded_virtualbox_versions) == (50_000, "60100 60101")
    assert (vbox.min_os_version, vbox.max_os_version) == (50_000, 0)
    assert (vbox.min_client_version, vbox.os_pattern) == (70_200, "Linux.*(5|6)")
    assert (cuda.processor_type, cuda.gpu_usage, cuda.cpu_share) == (ProcessorType.NVIDIA, 0.5, 0.1)
    assert (cuda.gpu_ram_used_bytes, cuda.max_cuda_version, cuda.max_opencl_version) == (384 * 2**20, 12_020, 0)
    assert (cuda.min_gpu_ram_bytes, cuda.min_compute_capability, cuda.lost) == (384 * 1024 * 1024, 301, [])


@pytest.mark.parametrize(
    ("name", "type_", "is_lost"),
    [
        ("mt", "CPU", False),
        ("cuda55", "NVIDIA", False),
        ("opencl_ati_101", "ATI", False),
        ("vbox64", "CPU", False),
        ("own_way", "CPU", True),
    ],
)
def test_plan_classes_without_a_description_are_known_by_name(name: str, type_: str, is_lost: bool) -> None:
    found = plan_classes.built_in(name)
    assert (found.name, found.processor_type, bool(found.lost)) == (name, type_, is_lost)


def test_config_says_what_became_of_it() -> None:
    read = config.read(CONFIG.format(url="https://p.example.org/fold/", cgi="https://p.example.org/fold_cgi/"))
    assert (read.fanout, read.daily_quota, read.is_one_per_user) == (1024, 400, False)
    assert read.validators()["fold"].comparison == "bitwise"
    said = list(config.became(read))
    assert ("set FORMER_PATHS to", "/fold/, /fold_cgi/cgi, /fold_cgi/file_upload_handler") in said
    assert ("set in the environment", "MAX_JOBS_IN_PROGRESS=6 (max_wus_in_progress 6)") in said
    assert ("of config.xml, not supported here", "ban_os Windows 95") in said
    assert sum(reason.startswith("a daemon or task") for reason, _ in said) == 3
    assert not [example for _, example in said if "SIGNUP" in example]


@pytest.mark.parametrize(
    ("xml", "found"),
    [
        ("<a>1</a><b/><c >2</c >", [("a", "1"), ("b", ""), ("c", "2")]),
        ("<a><b>1</b></a>", [("a", "<b>1</b>")]),
        ("<a><b>1</b>", [("b", "1")]),
        ("<a>1</ab></a>", [("a", "1</ab>")]),
        ("<a>" * 100_000 + "<b>1</b>", [("b", "1")]),
    ],
    ids=["in a row", "inside", "unclosed", "a longer name", "unclosed many times"],
)
def test_elements_are_the_outermost_that_are_closed(xml: str, found: list[tuple[str, str]]) -> None:
    assert list(blobs.elements(xml)) == found

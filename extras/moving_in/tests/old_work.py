"""An app of a BOINC project with its files and jobs, as BOINC's server has them in tables and folders."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from extras.moving_in.engine.jobs import folder_of
from extras.moving_in.tests.old_project import T0, OldProject
from portal.wire import signing

FANOUT: Final = 1024
MAX_NBYTES: Final = 100_000
APP: Final = 3
VERSION: Final = 11
PLATFORM: Final = 5
TEMPLATE: Final = """<output_template>
<file_info>
    <name><OUTFILE_0/></name>
    <generated_locally/>
    <upload_when_present/>
    <max_nbytes>100000</max_nbytes>
    <url><UPLOAD_URL/></url>
</file_info>
<result>
    <file_ref><file_name><OUTFILE_0/></file_name><open_name>out</open_name><copy_file/></file_ref>
</result>
</output_template>
"""
PLAN_CLASSES: Final = """<?xml version="1.0"?>
<plan_classes>
  <plan_class><name>mt4</name><min_ncpus>2</min_ncpus><max_threads>4</max_threads><nthreads_cmdline/></plan_class>
  <plan_class>
    <name>vbox64</name><virtualbox/><is64bit/><vm_accel_required/><min_vbox_version>50000</min_vbox_version>
    <exclude_vbox_version>60100</exclude_vbox_version><exclude_vbox_version>60101</exclude_vbox_version>
    <min_core_client_version>702</min_core_client_version><os_regex>Linux.*(5|6)</os_regex>
    <min_os_version>50000</min_os_version><min_android_version>80000</min_android_version>
  </plan_class>
  <plan_class>
    <name>cuda_old</name><gpu_type>nvidia</gpu_type><cuda/><min_nvidia_compcap>301</min_nvidia_compcap>
    <min_gpu_ram_mb>384</min_gpu_ram_mb><gpu_ram_used_mb>384</gpu_ram_used_mb>
    <max_cuda_version>12020</max_cuda_version><max_opencl_version>300</max_opencl_version><ngpus>0.5</ngpus>
  </plan_class>
</plan_classes>
"""
CONFIG: Final = """<?xml version="1.0" ?>
<boinc>
  <config>
    <long_name>Fold</long_name>
    <master_url>{url}</master_url>
    <download_url>{url}download</download_url>
    <upload_url>{cgi}file_upload_handler</upload_url>
    <uldl_dir_fanout>1024</uldl_dir_fanout>
    <daily_result_quota>400</daily_result_quota>
    <max_wus_in_progress>6</max_wus_in_progress>
    <ban_os>Windows 95</ban_os>
    <disable_account_creation>0</disable_account_creation>
  </config>
  <daemons>
    <daemon><cmd>feeder -d 3</cmd></daemon>
    <daemon><cmd>sample_bitwise_validator -d 2 --app fold</cmd></daemon>
  </daemons>
  <tasks><task><cmd>db_purge --min_age_days 7</cmd></task></tasks>
</boinc>
"""


def md5_of(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@dataclass
class OldWork:
    """``url``: the master URL; below the host are ``fold/`` and ``fold_cgi/``."""

    project: OldProject
    folder: Path
    url: str = "https://p.example.org/fold/"
    code_key: signing.PrivateKey = field(default_factory=signing.generate_key)
    upload_key: signing.PrivateKey = field(default_factory=signing.generate_key)

    @property
    def cgi(self) -> str:
        return self.url.removesuffix("/") + "_cgi/"

    def make(self, program: bytes = b"#!/bin/sh\n", platform: str = "x86_64-pc-linux-gnu", **version: Any) -> None:
        """The folder, and an app with a version."""
        for name in ("keys", "download", "upload", "templates"):
            (self.folder / name).mkdir(parents=True)
        self.write("config.xml", CONFIG.format(url=self.url, cgi=self.cgi))
        self.write("plan_class_spec.xml", PLAN_CLASSES)
        self.write("templates/fold_out", TEMPLATE)
        for name, key in (("code_sign", self.code_key), ("upload", self.upload_key)):
            self.write(f"keys/{name}_private", signing.private_key_text(key))
            self.write(f"keys/{name}_public", signing.public_key_text(key))
        self.project.add("platform", id=PLATFORM, name=platform, user_friendly_name="Linux")
        self.project.add("app", id=APP, name="fold", user_friendly_name="Folding")
        self.version(program, **version)

    def write(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text)

    def version(
        self, program: bytes, number: int = VERSION, num: int = 105, start: str = "<dont_throttle/>\n", **values: Any
    ) -> None:
        name = f"fold_{num}_{values.get('plan_class', '')}_linux"
        (self.folder / "download" / name).write_bytes(program)
        signature = signing.sign(program, self.code_key)
        xml = (
            f"<file_info>\n<name>{name}</name>\n<url>{self.url}download/{name}</url>\n<executable/>\n"
            f"<file_signature>\n{signature}</file_signature>\n<nbytes>{len(program)}.000000</nbytes>\n</file_info>\n"
            f"<app_version>\n<app_name>fold</app_name>\n<version_num>{num}</version_num>\n"
            f"<file_ref>\n<file_name>{name}</file_name>\n<main_program/>\n</file_ref>\n"
            f"{start}</app_version>\n"
        )
        usual: dict[str, Any] = {"id": number, "appid": APP, "platformid": PLATFORM, "version_num": num}
        self.project.add("app_version", **{**usual, "xml_doc": xml.encode(), **values})

    def put(self, kind: str, name: str, content: bytes) -> Path:
        """A file in download/ or upload/, where BOINC's server has it."""
        path = self.folder / kind / folder_of(name, FANOUT) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def workunit(self, number: int, content: bytes = b"data\n", command_line: str = "--fast", **values: Any) -> str:
        """A workunit with an input file of its own; its name."""
        name, file = f"fold_wu_{number}", f"in_{number}"
        path = self.put("download", file, content)
        url = f"{self.url}{path.relative_to(self.folder)}"
        xml = (
            f"<file_info>\n<name>{file}</name>\n<url>{url}</url>\n<md5_cksum>{md5_of(content)}</md5_cksum>\n"
            f"<nbytes>{len(content)}</nbytes>\n</file_info>\n<workunit>\n<command_line>\n{command_line}\n</command_line>\n"
            f"<file_ref>\n<file_name>{file}</file_name>\n<open_name>in</open_name>\n<copy_file/>\n</file_ref>\n</workunit>\n"
        )
        usual: dict[str, Any] = {
            **{"id": number, "appid": APP, "name": name, "xml_doc": xml.encode(), "rsc_fpops_est": 2e9},
            **{"rsc_fpops_bound": 2e13, "rsc_memory_bound": 1e8, "rsc_disk_bound": 1e8, "delay_bound": 7 * 86_400},
            **{"transition_time": T0 + 86_400, "result_template_file": "templates/fold_out"},
        }
        self.project.add("workunit", **(usual | values))
        return name

    def result_xml(self, name: str, random: str = "_r1193428123", *, is_signed: bool = True) -> str:
        """result.xml_doc_in, as the server sends it, too."""
        file = f"{name}{random}_0"
        text = f"<name>{file}</name><max_nbytes>{MAX_NBYTES}</max_nbytes>"
        signature = (
            f"<xml_signature>\n{signing.sign(text.encode(), self.upload_key)}</xml_signature>\n" if is_signed else ""
        )
        return (
            f"<file_info>\n<name>{file}</name>\n<generated_locally/>\n<upload_when_present/>\n"
            f"<max_nbytes>{MAX_NBYTES}</max_nbytes>\n<url>{self.cgi}file_upload_handler</url>\n{signature}</file_info>\n"
            f"<result>\n<file_ref>\n<file_name>{file}</file_name>\n<open_name>out</open_name>\n<copy_file/>\n</file_ref>\n"
            "</result>\n"
        )

    def result(self, number: int, workunit: int, nth: int = 0, **values: Any) -> str:
        """A result of a workunit, unsent; its name."""
        name = f"fold_wu_{workunit}_{nth}"
        xml = values.pop("xml", None) or self.result_xml(name)
        usual: dict[str, Any] = {"id": number, "workunitid": workunit, "appid": APP, "name": name, "server_state": 2}
        self.project.add("result", **{**usual, "xml_doc_in": xml.encode(), **values})
        return name

    def sent(self, number: int, workunit: int, host: int, user: int, nth: int = 0, **values: Any) -> str:
        """One that is in progress."""
        usual: dict[str, Any] = {
            **{"server_state": 4, "hostid": host, "userid": user, "sent_time": T0, "report_deadline": 2_000_000_000},
            **{"app_version_id": VERSION, "app_version_num": 105, "flops_estimate": 1e9},
        }
        return self.result(number, workunit, nth, **(usual | values))

    def over(self, number: int, workunit: int, host: int, user: int, nth: int = 0, **values: Any) -> str:
        """One that was reported as a success."""
        usual: dict[str, Any] = {
            **{"server_state": 5, "outcome": 1, "client_state": 5, "received_time": T0 + 7200, "elapsed_time": 3600.0},
            "cpu_time": 3500.0,
        }
        return self.sent(number, workunit, host, user, nth, **(usual | values))

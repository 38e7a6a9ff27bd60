"""The scheduler reply as clients read it (BOINC protocol, scheduler reply and job description). Pure: values to bytes.

Clients read line by line and unescape little: names and addresses here have no characters that need escaping, and texts
are escaped. An object comes before what refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape

import msgspec

from scheduler.engine.outputs import upload_name

SCHEDULER_VERSION: Final = 720
MAX_MESSAGE: Final = 900
"""The length in characters of a message; the client's own buffer has 1,024 bytes."""
NTHREADS_OPTION: Final = "--nthreads"
_STICKY: Final = "<sticky/>\n"
_EXECUTABLE: Final = "<executable/>\n"
REFUSED_WAIT_SECS: Final = 3600
WRONG_KEY_WAIT_SECS: Final = 60


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the client's log or, as a notice, for its owner."""

    text: str
    is_notice: bool = False


class Person(msgspec.Struct):
    """The account, with credit in Cobblestones and per day; times in Unix seconds. ``external_cpid``: as published."""

    id: int
    name: str
    email_hash: str
    cross_project_id: str
    external_cpid: str
    created_at: float
    total_credit: float
    expavg_credit: float


class HostCard(msgspec.Struct):
    """The computer. ``id`` is sent only if the client does not have it yet: a new id makes it a new computer."""

    id: int
    is_new_to_client: bool
    venue: str
    created_at: float
    total_credit: float
    expavg_credit: float


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file of an app version, as clients download and use it."""

    name: str
    nbytes: int
    md5: str
    signature: str
    is_executable: bool
    open_name: str
    is_main_program: bool
    is_copied: bool


@dataclass(frozen=True, slots=True)
class VersionStart:
    """How clients start a version; properties that are empty or false are left out of the reply.

    ``is_wrapper``: it starts the program that computes, so it gets a better priority than that. ``needs_network``: it
    waits while the network is suspended. ``file_prefix``: the folder of its inputs and outputs.
    """

    api_version: str = ""
    cmdline: str = ""
    is_wrapper: bool = False
    needs_network: bool = False
    dont_throttle: bool = False
    file_prefix: str = ""


@dataclass(frozen=True, slots=True)
class VersionRefs:
    """The part of <app_version> that is the same for every computer, rendered once (`render_version_refs`).

    ``refs_xml``: how it is started, except ``cmdline``, its own arguments as XML text; and its <file_ref> elements.
    """

    refs_xml: str
    cmdline: str


class VersionCard(msgspec.Struct):
    """An app version of a reply; ``files_xml``: its <file_info> elements, ``files``: how it uses them.

    ``nthreads``: how many threads its program is told to use, None if it is not told.
    """

    app_name: str
    version_num: int
    platform: str
    plan_class: str
    avg_ncpus: float
    flops: float
    gpu_type: str
    gpu_usage: float
    files: VersionRefs
    files_xml: str
    nthreads: int | None = None
    gpu_ram_bytes: int = 0


class JobCard(msgspec.Struct):
    """A job of a reply. ``inputs``, ``outputs``: as in the workunit's columns.

    For each output: ``certificates`` of the upload, and ``size_keys``, which its address ends with.
    """

    result_name: str
    workunit_name: str
    app_name: str
    version_num: int
    platform: str
    plan_class: str
    deadline_at: float
    fpops_est: float
    fpops_bound: float
    memory_bytes: int
    disk_bytes: int
    command_line: str
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[dict[str, Any]]
    certificates: Sequence[str]
    size_keys: Sequence[str]


class SchedulerReply(msgspec.Struct):
    """The content of a reply.

    ``master_url``: empty if the client should keep its address. ``next_rpc_secs``: the client contacts the server again
    after this time at the latest; 0: when it has a reason. ``preferences``: the elements of newer general preferences;
    ``project_preferences``: those for this project, in each reply, or None if the client should keep its own.
    ``later_deadlines``: of jobs that the client has, by name. ``files_to_delete``: those that clients no longer need to
    keep. ``resigned_xml``: if the key changes, files that the client may still be fetching, signed with the new one.
    """

    project_name: str
    master_url: str
    download_url: str
    upload_url: str
    request_delay_secs: int
    next_rpc_secs: int
    person: Person
    host: HostCard
    notices: list[Notice] = []
    result_acks: list[str] = []
    aborts: list[str] = []
    aborts_if_not_started: list[str] = []
    files_to_delete: list[str] = []
    acks_messages: bool = False
    preferences: str = ""
    project_preferences: str = ""
    about_project_xml: str = ""
    code_sign_key_xml: str = ""
    resigned_xml: list[str] = []
    apps_xml: list[str] = []
    versions: list[VersionCard] = []
    jobs: list[JobCard] = []
    trickle_downs_xml: list[str] = []
    later_deadlines: list[tuple[str, float]] = []


def render_reply(reply: SchedulerReply) -> bytes:
    person, host = reply.person, reply.host
    parts = [
        f"<scheduler_reply>\n<scheduler_version>{SCHEDULER_VERSION}</scheduler_version>\n<dont_use_dcf/>\n",
        f"<master_url>{reply.master_url}</master_url>\n" if reply.master_url else "",
        f"""<request_delay>{reply.request_delay_secs}</request_delay>
<project_name>{escape(reply.project_name)}</project_name>
{"".join(map(_notice, reply.notices))}<userid>{person.id}</userid>
<user_name>{escape(person.name)}</user_name>
<user_total_credit>{person.total_credit:.6f}</user_total_credit>
<user_expavg_credit>{person.expavg_credit:.6f}</user_expavg_credit>
<user_create_time>{int(person.created_at)}</user_create_time>
<email_hash>{person.email_hash}</email_hash>
<cross_project_id>{person.cross_project_id}</cross_project_id>
<external_cpid>{person.external_cpid}</external_cpid>
""",
        f"<hostid>{host.id}</hostid>\n" if host.is_new_to_client else "",
        f"""<host_total_credit>{host.total_credit:.6f}</host_total_credit>
<host_expavg_credit>{host.expavg_credit:.6f}</host_expavg_credit>
<host_venue>{escape(host.venue)}</host_venue>
<host_create_time>{int(host.created_at)}</host_create_time>
""",
    ]
    parts += [f"<result_ack>\n<name>{escape(name)}</name>\n</result_ack>\n" for name in reply.result_acks]
    parts += [f"<result_abort>\n<name>{escape(name)}</name>\n</result_abort>\n" for name in reply.aborts]
    parts += [
        f"<result_abort_if_not_started>\n<name>{escape(name)}</name>\n</result_abort_if_not_started>\n"
        for name in reply.aborts_if_not_started
    ]
    parts += [f"<delete_file_info>{name}</delete_file_info>\n" for name in reply.files_to_delete]
    if reply.next_rpc_secs:
        parts.append(f"<next_rpc_delay>{reply.next_rpc_secs}</next_rpc_delay>\n")
    if reply.preferences:
        parts.append(f"<global_preferences>\n{reply.preferences}\n</global_preferences>\n")
    if reply.project_preferences:
        parts.append(f"<project_preferences>\n{reply.project_preferences}\n</project_preferences>\n")
    parts.append(reply.about_project_xml)
    if reply.acks_messages:
        parts.append("<message_ack/>\n")
    if reply.code_sign_key_xml:
        parts.append(reply.code_sign_key_xml)
        parts += reply.resigned_xml
    parts += reply.apps_xml
    parts += [_version(version) for version in reply.versions]
    parts += reply.trickle_downs_xml
    if reply.later_deadlines:
        # So that its next request names the deadlines that it has.
        parts.append("<send_full_workload/>\n")
    # A client that has the job takes only the deadline from it.
    parts += [
        f"<result>\n<name>{name}</name>\n<report_deadline>{deadline_at:.0f}</report_deadline>\n</result>\n"
        for name, deadline_at in reply.later_deadlines
    ]
    file_names: set[str] = set()
    for job in reply.jobs:
        _add_job(parts, job, reply, file_names)
    parts.append("</scheduler_reply>\n")
    return "".join(parts).encode()


def render_refusal(text: str, wait_secs: int = REFUSED_WAIT_SECS) -> bytes:
    """Render a reply that only says why, and when to come again."""
    return (
        f"<scheduler_reply>\n<scheduler_version>{SCHEDULER_VERSION}</scheduler_version>\n"
        f"{_notice(Notice(text, is_notice=True))}<request_delay>{wait_secs}</request_delay>\n</scheduler_reply>\n"
    ).encode()


def render_code_sign_key(key: str, signature: str = "") -> str:
    """Render the project's key; for a client that has another one, with that one's signature."""
    signed = f"<code_sign_key_signature>\n{signature.strip()}\n</code_sign_key_signature>\n" if signature else ""
    return f"<code_sign_key>\n{key.strip()}\n</code_sign_key>\n{signed}"


def render_unused_types(types: Iterable[str]) -> str:
    """Render the kinds of processors without programs in this project: clients need not ask for work for them."""
    return "".join(f"<no_rsc_apps>{type_}</no_rsc_apps>\n" for type_ in types)


def render_gui_urls(urls: Iterable[tuple[str, str, str]]) -> str:
    """Render the links that the BOINC Manager shows with the project: name, purpose, address."""
    entries = "".join(
        f"<gui_url>\n<name>{escape(name)}</name>\n<description>{escape(text)}</description>\n<url>{escape(url)}</url>\n"
        "</gui_url>\n"
        for name, text, url in urls
    )
    return f"<gui_urls>\n{entries}</gui_urls>\n"


def render_app(name: str, user_friendly_name: str, is_non_cpu_intensive: bool) -> str:
    return (
        f"<app>\n<name>{name}</name>\n<user_friendly_name>{escape(user_friendly_name)}</user_friendly_name>\n"
        f"<non_cpu_intensive>{int(is_non_cpu_intensive)}</non_cpu_intensive>\n</app>\n"
    )


def render_version_files(files: Iterable[ClientFile], download_url: str) -> str:
    """Render the <file_info> elements of a version's files."""
    return "".join(
        f"<file_info>\n<name>{file.name}</name>\n<url>{download_url}{file.name}</url>\n"
        f"{'<executable/>' if file.is_executable else ''}\n"
        f"<file_signature>\n{file.signature.strip()}\n</file_signature>\n"
        f"<md5_cksum>{file.md5}</md5_cksum>\n<nbytes>{file.nbytes}</nbytes>\n</file_info>\n"
        for file in files
    )


def render_version_refs(files: Iterable[ClientFile], start: VersionStart) -> VersionRefs:
    """Render the constant part of <app_version>.

    Without <api_version> a client creates no shared memory for a program: no CPU time, progress or checkpoints. It is
    left out if empty (BOINC protocol, job description and what a job program must do).
    """
    texts = {"api_version": start.api_version, "file_prefix": start.file_prefix}
    begun = "".join(f"<{tag}>{text}</{tag}>\n" for tag, text in texts.items() if text)
    flags = ("is_wrapper", "needs_network", "dont_throttle")
    begun += "".join(f"<{flag}/>\n" for flag in flags if getattr(start, flag))
    refs = "".join(_file_ref(f.name, f.open_name, f.is_copied, f.is_main_program) for f in files)
    return VersionRefs(refs_xml=begun + refs, cmdline=escape(start.cmdline))


def _notice(notice: Notice) -> str:
    text = " ".join(notice.text.split())[:MAX_MESSAGE]
    return f'<message priority="{"notice" if notice.is_notice else "low"}">{escape(text)}</message>\n'


def _version(version: VersionCard) -> str:
    coproc = ""
    if version.gpu_type:
        coproc = f"<coproc>\n<type>{version.gpu_type}</type>\n<count>{version.gpu_usage:g}</count>\n</coproc>\n"
    cmdline = version.files.cmdline
    if version.nthreads is not None:
        cmdline = f"{cmdline} {NTHREADS_OPTION} {version.nthreads}".lstrip()
    ram = f"<gpu_ram>{version.gpu_ram_bytes:.6f}</gpu_ram>\n" if version.gpu_type and version.gpu_ram_bytes else ""
    return (
        f"{version.files_xml}<app_version>\n<app_name>{version.app_name}</app_name>\n"
        f"<version_num>{version.version_num}</version_num>\n{version.files.refs_xml}"
        f"<platform>{version.platform}</platform>\n<plan_class>{version.plan_class}</plan_class>\n"
        f"<avg_ncpus>{version.avg_ncpus:g}</avg_ncpus>\n<flops>{version.flops:.6f}</flops>\n"
        f"{f'<cmdline>{cmdline}</cmdline>' + chr(10) if cmdline else ''}{coproc}{ram}</app_version>\n"
    )


def _file_ref(name: str, open_name: str, is_copied: bool, is_main_program: bool = False) -> str:
    return (
        f"<file_ref>\n<file_name>{name}</file_name>\n"
        f"{f'<open_name>{escape(open_name)}</open_name>' + chr(10) if open_name else ''}"
        f"{'<copy_file/>' + chr(10) if is_copied else ''}{'<main_program/>' + chr(10) if is_main_program else ''}"
        "</file_ref>\n"
    )


def _urls(file: Mapping[str, Any], download_url: str) -> str:
    """Render an input's addresses. Clients prefer a packed copy, and try several addresses in turn."""
    own_url = download_url + quote(file["name"])
    plain = "".join([f"<url>{url}</url>\n" for url in file.get("urls") or [own_url]])
    if not (nbytes := file.get("gzipped_nbytes")):
        return plain
    packed = "".join([f"<gzipped_url>{url}</gzipped_url>\n" for url in file.get("gzipped_urls") or [f"{own_url}.gz"]])
    return f"{plain}{packed}<gzipped_nbytes>{int(nbytes)}</gzipped_nbytes>\n"


def _add_job(parts: list[str], job: JobCard, reply: SchedulerReply, file_names: set[str]) -> None:
    """Add inputs that the reply does not have yet, the workunit, its outputs and the result.

    Files are copied to and from the program's folder: only a program that is linked with BOINC's library could follow a
    link.
    """
    parts += [
        f"<file_info>\n<name>{file['name']}</name>\n{_urls(file, reply.download_url)}"
        f"<md5_cksum>{file['md5']}</md5_cksum>\n<nbytes>{int(file['nbytes'])}</nbytes>\n"
        f"{_STICKY if file.get('sticky') else ''}{_EXECUTABLE if file.get('executable') else ''}</file_info>\n"
        for file in job.inputs
        if file["name"] not in file_names
    ]
    file_names.update(file["name"] for file in job.inputs)
    parts.append(
        f"<workunit>\n<name>{job.workunit_name}</name>\n<app_name>{job.app_name}</app_name>\n"
        f"<version_num>{job.version_num}</version_num>\n<rsc_fpops_est>{job.fpops_est:.6f}</rsc_fpops_est>\n"
        f"<rsc_fpops_bound>{job.fpops_bound:.6f}</rsc_fpops_bound>\n"
        f"<rsc_memory_bound>{job.memory_bytes}</rsc_memory_bound>\n<rsc_disk_bound>{job.disk_bytes}</rsc_disk_bound>\n"
        f"<command_line>{escape(job.command_line)}</command_line>\n"
    )
    parts += [_file_ref(file["name"], file.get("open_name", ""), True) for file in job.inputs]
    parts.append("</workunit>\n")
    refs = []
    for number, (file, certificate, key) in enumerate(zip(job.outputs, job.certificates, job.size_keys, strict=True)):
        name = upload_name(job.result_name, number)
        parts.append(
            f"<file_info>\n<name>{name}</name>\n<generated_locally/>\n<upload_when_present/>\n"
            f"<max_nbytes>{int(file['max_nbytes'])}</max_nbytes>\n<url>{reply.upload_url}?{key}</url>\n"
            f"<xml_signature>\n{certificate.strip()}\n</xml_signature>\n"
            f"{'<gzip_when_done/>' + chr(10) if file.get('gzip_when_done') else ''}"
            f"{_STICKY if file.get('sticky') else ''}</file_info>\n"
        )
        optional = "<optional/>\n</file_ref>" if file.get("optional") else "</file_ref>"
        refs.append(_file_ref(name, file.get("open_name", ""), True).replace("</file_ref>", optional))
    parts.append(
        f"<result>\n<name>{job.result_name}</name>\n<wu_name>{job.workunit_name}</wu_name>\n"
        f"<report_deadline>{job.deadline_at:.0f}</report_deadline>\n<platform>{job.platform}</platform>\n"
        f"<version_num>{job.version_num}</version_num>\n<plan_class>{job.plan_class}</plan_class>\n"
        f"{''.join(refs)}</result>\n"
    )

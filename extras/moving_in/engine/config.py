"""config.xml of a BOINC project: what clients and people notice of it, and what it becomes here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from extras.moving_in.engine import blobs

_SETTINGS: Final = {
    # by the element: the setting, and the range that it has here
    "max_wus_in_progress": ("MAX_JOBS_IN_PROGRESS", 1, 10_000),
    "max_wus_in_progress_gpu": ("MAX_GPU_JOBS_IN_PROGRESS", 0, 10_000),
    "max_wus_to_send": ("MAX_JOBS_PER_RPC", 1, 500),
    "min_sendwork_interval": ("MIN_SENDWORK_INTERVAL_SECS", 0, 86_400),
    "next_rpc_delay": ("SCHEDULER_NEXT_RPC_SECS", 0, 30 * 86_400),
}
_SWITCHES: Final = {
    "disable_account_creation": "SIGNUP_OPEN=0, CLIENT_SIGNUP_OPEN=0",
    "disable_account_creation_rpc": "CLIENT_SIGNUP_OPEN=0",
    "disable_web_account_creation": "SIGNUP_OPEN=0",
}
_IN_APPS: Final = {
    "daily_result_quota": "each app’s initial daily job limit",
    "one_result_per_user_per_wu": "each app’s “one result per volunteer and workunit”",
}
_AS_HERE: Final = frozenset(
    {
        *("resend_lost_results", "send_result_abort", "cache_md5_info", "ignore_delay_bound", "workload_sim"),
        "size_classes",
        *("dont_generate_upload_certificates", "ignore_upload_certificates", "prefer_primary_platform"),
        *("msg_to_host", "file_deletion_strategy", "matchmaker", "show_results", "version_select_random_factor"),
    }
)
_OTHERS: Final = frozenset(
    {
        *("min_core_client_version", "ban_os", "ban_cpu", "report_grace_period", "grace_period_hours"),
        *("reliable_max_avg_turnaround", "reliable_on_priority", "reliable_priority_on_over", "credit_by_app"),
        *("reliable_reduced_delay_bound", "homogeneous_redundancy", "hr_class_static", "hr_allocate_slots"),
        *("enable_assignment", "enable_assignment_multi", "keyword_sched", "batch_accel", "locality_scheduling"),
        *("maintenance_delay", "default_disk_min_free_gb", "max_ncpus", "delete_delay_hours", "min_passwd_length"),
        *("one_result_per_host_per_wu", "dont_store_success_stderr", "gpu_multiplier", "enable_delete_account"),
        *("enable_privacy_by_default", "enable_login_mustagree_termsofuse", "account_creation_rpc_require_consent"),
    }
)
_VALIDATOR: Final = re.compile(r"\b(\w*validator\w*)\b(.*)")


@dataclass(frozen=True, slots=True)
class ValidatorFacts:
    """How a daemon of the project validates results. ``comparison``: as `credit.models.App` has it; empty: unknown."""

    program: str
    comparison: str
    is_credit_given: bool


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """What the import needs of it."""

    values: dict[str, str]
    commands: tuple[str, ...]

    @property
    def fanout(self) -> int:
        return int(blobs.number(self.values, "uldl_dir_fanout"))

    @property
    def download_url(self) -> str:
        return self.values.get("download_url", "")

    @property
    def daily_quota(self) -> int:
        return max(int(blobs.number(self.values, "daily_result_quota")), 0)

    @property
    def is_one_per_user(self) -> bool:
        return blobs.is_on(self.values, "one_result_per_user_per_wu")

    @property
    def former_paths(self) -> list[str]:
        """For FORMER_PATHS: the paths of master page, scheduler and upload handler."""
        master = urlsplit(self.values.get("master_url", "")).path
        uploads = urlsplit(self.values.get("upload_url", "")).path
        if not uploads.endswith("file_upload_handler"):
            return [master] if master else []
        return [path for path in (master, uploads.removesuffix("file_upload_handler") + "cgi", uploads) if path]

    def validators(self) -> dict[str, ValidatorFacts]:
        """By the names of apps."""
        found: dict[str, ValidatorFacts] = {}
        for command in self.commands:
            match, app = _VALIDATOR.search(command), re.search(r"--?app\s+(\S+)", command)
            if match is None or app is None:
                continue
            comparison = "bitwise" if match[1] == "sample_bitwise_validator" else ""
            found[app[1]] = ValidatorFacts(match[1], comparison, "--credit_from_wu" in match[2])
        return found


def read(text: str) -> ProjectConfig:
    plain = re.sub(r"<!--.*?-->|<\?.*?\?>", "", text, flags=re.DOTALL)
    root = next((each.inside for each in blobs.elements(plain) if each.tag == "boinc"), plain)
    parts = {each.tag: each.inside for each in blobs.elements(root)}
    commands = [
        each.get("cmd", "")
        for part in ("daemons", "tasks")
        for tag in ("daemon", "task")
        for each in blobs.sections(parts.get(part, ""), tag)
    ]
    return ProjectConfig(blobs.fields(parts.get("config", "")), tuple(commands))


def became(config: ProjectConfig) -> Iterator[tuple[str, str]]:
    """What each value becomes: a sentence that several share, and the example that is of this one."""
    if config.former_paths:
        yield "set FORMER_PATHS to", ", ".join(config.former_paths)
    if name := config.values.get("long_name"):
        yield "set SITE_NAME to", name
    for tag, value in config.values.items():
        said = f"{tag} {value}".strip()
        if tag in _SETTINGS:
            name, low, high = _SETTINGS[tag]
            yield (
                "set in the environment",
                f"{name}={int(min(max(blobs.number(config.values, tag), low), high))} ({said})",
            )
        elif switched := _SWITCHES.get(tag):
            if blobs.is_on(config.values, tag):
                yield "set in the environment", f"{switched} ({said})"
        elif tag in _IN_APPS:
            yield f"taken as {_IN_APPS[tag]}", said
        elif tag in _AS_HERE:
            yield "of config.xml, not needed: this site has its own way", said
        elif tag in _OTHERS and blobs.is_on(config.values, tag):
            yield "of config.xml, not supported here", said
    for command in config.commands:
        yield (
            "a daemon or task of the project: check whether its options ask for something that this site has to do",
            command,
        )

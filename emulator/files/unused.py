"""Elements of a client's files that change nothing, each with the reason. Pure.

The readers count them: whatever was not read from a Section is unused. So an element that a reader starts to use
disappears from this list automatically. The table below only has the codes of the reasons.
"""

from typing import Final

from emulator.engine.scenario import Unused
from emulator.files.sections import Section

KINDS_MAX: Final = 400
NAME_CHARS: Final = 80

PERSON: Final = "unused_person"
STATISTICS: Final = "unused_statistic"
TRANSFERS: Final = "unused_transfers"
PROGRAMS: Final = "unused_programs"
EXCHANGE: Final = "unused_exchange"
SPACE: Final = "unused_space"
MACHINE: Final = "unused_machine"
CLIENT: Final = "unused_client"
CHOSEN: Final = "unused_chosen"
NOT_MODELLED: Final = "unused_not_modelled"
REPLACED: Final = "unused_replaced"
OTHER_VENUE: Final = "unused_other_venue"
UNKNOWN: Final = "unused_unknown"

_WHYS: Final = {
    PERSON: "user_name team_name email_hash cross_project_id external_cpid cpid_time userid teamid hostid host_cpid "
    "user_create_time host_create_time domain_name ip_addr mac_address user_cpids",
    STATISTICS: "user_total_credit user_expavg_credit host_total_credit host_expavg_credit rec_time njobs_success "
    "njobs_error elapsed_time cpu_ec cpu_time gpu_ec gpu_time previous_uptime last_update client_start_time "
    "total_start_time total_duration total_active_duration total_gpu_active_duration session_active_duration "
    "session_gpu_active_duration cpu_and_network_available_frac final_cpu_time final_elapsed_time exit_status "
    "final_peak_working_set_size final_peak_swap_size final_peak_disk_usage fpops_per_cpu_sec fpops_cumulative "
    "intops_per_cpu_sec intops_cumulative current_cpu_time checkpoint_cpu_time page_fault_rate bytes_sent "
    "bytes_received last_rpc_time",
    TRANSFERS: "net_stats file file_info file_transfer file_xfer persistent_file_xfer max_bytes_sec_down "
    "max_bytes_sec_up daily_xfer_limit_mb daily_xfer_period_days max_file_xfers max_file_xfers_per_project "
    "download_backoff upload_backoff network_wifi_only",
    PROGRAMS: "file_ref project_files symstore use_symlinks user_friendly_name api_version cmdline command_line "
    "file_prefix graphics_exec exec_filename stderr_out slot fraction_done_exact needs_network version_num "
    "app_version_num dont_throttle is_wrapper result_name platform once_ran_edf checkpoint_fraction_done_elapsed_time "
    "rsc_fpops_bound name plan_class",
    EXCHANGE: "rpc_seqno master_fetch_failures sched_rpc_pending send_time_stats_log send_job_log scheduler_url "
    "code_sign_key trickle_up_url trickle_up_pending send_full_workload master_url_fetch_pending "
    "scheduler_rpc_in_progress attached_via_acct_mgr ams_resource_share_new detach_when_done ended "
    "host_venue got_server_ack report_immediately nbytes proxy_info source_project source_scheduler mod_time",
    SPACE: "disk_usage disk_share desired_disk_usage m_cache m_swap d_total d_free swap_size virtual_size "
    "working_set_size rsc_disk_bound vm_max_used_pct disk_max_used_gb disk_max_used_pct disk_min_free_gb disk_interval "
    "leave_apps_in_memory strict_memory_bound available_ram",
    MACHINE: "p_vendor p_model p_features p_iops p_membw p_calculated p_vm_extensions_disabled os_name "
    "os_version n_usable_coprocs wsl_available product_name virtualbox_version docker_version docker_type wsl "
    "docker_compose_version docker_compose_type opencl_cpu_prop coproc_opencl name have_cuda have_cal have_opencl "
    "cudaVersion drvVersion totalGlobalMem clockRate major minor device_id domain_id bus_id model target "
    "platform_name alt_platform",
    CLIENT: "core_client_major_version core_client_minor_version core_client_release new_version_check_time "
    "all_projects_list_check_time client_version_check_url newer_version language log_flags auto_update "
    "allow_multiple_clients allow_remote_gui_rpc skip_cpu_benchmarks max_event_log_lines no_info_fetch "
    "dont_contact_ref_site save_stats_days max_stdout_file_size max_stderr_file_size simple_gui_only no_alt_platform "
    "suppress_net_info process_priority process_priority_special lower_client_priority network_test_url",
    CHOSEN: "user_run_request user_run_prev_request user_gpu_request user_gpu_prev_request user_network_request",
    REPLACED: "start_hour end_hour net_start_hour net_end_hour run_if_user_active run_gpu_if_user_active "
    "run_on_batteries cpu_usage_limit max_cpus max_ncpus_pct ram_max_used_busy_pct ram_max_used_idle_pct "
    "work_buf_min_days work_buf_additional_days cpu_scheduling_period_minutes",
    NOT_MODELLED: "suspend_cpu_usage niu_suspend_cpu_usage niu_max_ncpus_pct niu_cpu_usage_limit idle_time_to_run "
    "suspend_if_no_recent_input confirm_before_connecting hangup_if_dialed dont_verify_images "
    "fetch_minimal_work fetch_on_update start_delay use_all_gpus ngpus prioritize_gpu ignore_tty "
    "max_overdue_days max_tasks_reported os_random_only dont_suspend_nci rec_half_life_days ignore_nvidia_dev "
    "ignore_cuda_dev ignore_ati_dev ignore_intel_dev ignore_apple_dev coproc sporadic checkpoint_period no_rsc_config "
    "battery_charge_min_pct battery_max_temperature",
}
_WHY: Final = {tag: why for why, tags in _WHYS.items() for tag in tags.split()}
# Places where the same tag means another thing.
_WHY_WITHIN: Final = {("venue", None): OTHER_VENUE, ("result", "name"): PROGRAMS, ("coproc", "name"): MACHINE}


class Tally:
    """Counts the unused elements of files."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(self, section: Section, within: str = "") -> None:
        """Count the unread parts of a section and of those inside it. Call it when the section has been read."""
        place = f"{within}{section.name}/"
        for tag in section.leaves:
            if tag not in section.used:
                self._count(section, place, tag, 1)
        for tag, number in section.skipped.items():
            self._count(section, place, tag, number)
        for inner in section.sections:
            self.add(inner, place)

    def _count(self, section: Section, place: str, tag: str, number: int) -> None:
        key = section.source.file, f"{place}{tag}"[:NAME_CHARS], _why(section.name, tag)
        if key in self._counts or len(self._counts) < KINDS_MAX:
            self._counts[key] = self._counts.get(key, 0) + number

    def unused(self) -> tuple[Unused, ...]:
        """Return all of them, by file, in the order in which they were found."""
        return tuple(Unused(file, element, count, why) for (file, element, why), count in self._counts.items())


def _why(section: str, tag: str) -> str:
    for place in ((section, None), (section, tag)):
        if place in _WHY_WITHIN:
            return _WHY_WITHIN[place]
    return _WHY.get(tag, UNKNOWN)

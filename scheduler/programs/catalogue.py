"""The catalogue: apps, versions, plan classes and heads of queues, which every RPC needs. Cached in this process for
seconds.

A handful of statements per reading, however many jobs wait.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Final

from django.db import connection

from credit.engine.averages import Average
from credit.models import App, AppVersion, Membership, ProcessorType
from credit.statistics.facts import rules_of
from portal.clients.database.timed_cache import TimedCache
from portal.clients.effects import in_thread
from portal.wire import keywords
from scheduler.engine.choice.containers import DOCKER, WSL
from scheduler.engine.facts import AppFacts, PlanClassRules, Version
from scheduler.engine.hr_classes import Redundancy
from scheduler.engine.lanes import FIRST_TARGETED, MAX_TARGETED_LANES, Lane, LaneIndex, LaneKind
from scheduler.files import addresses
from scheduler.models import AppKeyword, BetaTester, Generation, TrickleDown, WorkBlock
from scheduler.models import PlanClass as PlanClassRow
from scheduler.programs import code_signing
from scheduler.programs.sql import READ_LANES, READ_QUEUES, READ_SIZES
from scheduler.wire.replies import (
    ClientFile,
    VersionRefs,
    VersionStart,
    render_app,
    render_gui_urls,
    render_unused_types,
    render_version_files,
    render_version_refs,
)

KEPT_SECS: Final = 5.0
"""Other processes follow a release or a change in the admin within this time."""
LOOKED_AT: Final = 100
"""The number of waiting jobs from which the usual size of an app's jobs is estimated."""

BEFORE_ALL: Final = (-(2**31), 0)
"""Lies before the queue of any app."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A snapshot of what requests need.

    ``app_xml``, ``version_xml`` and ``version_files``: their elements in a reply, by id; for a version its files, and
    how it uses them. ``heads``: where the queue of each app begins, as far as this process has seen. Whatever lies
    before it has been sent, but PostgreSQL would scan all of it again as long as any old transaction runs. ``lanes``:
    those with waiting jobs, by app; ``teams``: of the members of teams that jobs wait for, by person.
    ``blocked_hosts``, ``blocked_users``: who gets no new jobs, and why. ``has_trickle_downs``: whether any message to a
    running job waits; if not, none is searched for. ``generation``: the mark of names since the last restore of the
    database, and when that was; None: never. ``read_at``: by the process's own clock; of two catalogues the newer one
    counts. ``about_project_xml``: links for volunteers, and the processor types without a program; ``gui_urls_xml``:
    only the links, for computers with their own programs.
    """

    apps: dict[int, AppFacts] = field(default_factory=dict)
    versions: dict[int, Version] = field(default_factory=dict)
    versions_by_app: dict[int, list[Version]] = field(default_factory=dict)
    plan_classes: dict[str, PlanClassRules] = field(default_factory=dict)
    app_names: dict[int, str] = field(default_factory=dict)
    app_xml: dict[int, str] = field(default_factory=dict)
    version_files: dict[int, VersionRefs] = field(default_factory=dict)
    version_xml: dict[int, str] = field(default_factory=dict)
    heads: dict[int, tuple[int, int]] = field(default_factory=dict)
    lanes: dict[int, LaneIndex] = field(default_factory=dict)
    teams: dict[int, int] = field(default_factory=dict)
    blocked_hosts: dict[int, str] = field(default_factory=dict)
    blocked_users: dict[int, str] = field(default_factory=dict)
    has_trickle_downs: bool = False
    code_keys: code_signing.KeyChain = field(default_factory=code_signing.KeyChain)
    generation: tuple[str, float] | None = None
    gui_urls_xml: str = ""
    about_project_xml: str = ""
    read_at: float = field(default_factory=time.monotonic)

    def note_head(self, app_id: int, head: tuple[int, int] | None) -> None:
        """Begin there from now on; None: too little was found from there, so begin before everything next time.

        Otherwise, jobs that come to lie before it, such as more urgent ones, are found when the catalogue is read
        again.
        """
        if head is None:
            self.heads.pop(app_id, None)
        elif head > self.heads.get(app_id, BEFORE_ALL):
            self.heads[app_id] = head


async def catalogue_for_key(held_key: str) -> Catalogue:
    """Return the catalogue for a client that holds this key: read again if it has just become the project's.

    Another process may have given the client the key; this one would otherwise refuse it as foreign.
    """
    catalogue = await fresh()
    if not catalogue.code_keys.knows(held_key) and await in_thread(code_signing.was_changed_to, held_key):
        forget()
        catalogue = await fresh()
    return catalogue


def _load() -> Catalogue:
    while True:
        loaded = _read()
        # Signatures are those of the key in force: if it was changed meanwhile, they are read once more.
        if loaded.code_keys.current == code_signing.code_signing_key_text():
            return loaded


def _read() -> Catalogue:
    generation = Generation.objects.last()
    catalogue = Catalogue(
        code_keys=code_signing.chain(),
        gui_urls_xml=render_gui_urls(addresses.gui_urls()),
        has_trickle_downs=TrickleDown.objects.filter(acknowledged_at=None).exists(),
        generation=None if generation is None else (generation.mark, generation.begun_at.timestamp()),
    )
    with connection.cursor() as cursor:
        cursor.execute(READ_QUEUES, [LOOKED_AT])
        queues = {row[0]: row[1:] for row in cursor.fetchall()}
    fpops_in_lanes = _read_lanes(catalogue)
    _read_sizes(catalogue)
    _read_blocks(catalogue)
    volunteers: frozenset[int] | None = None
    about: dict[int, set[int]] = {}
    for app_id, keyword in AppKeyword.objects.values_list("app", "keyword"):
        about.setdefault(app_id, set()).add(keyword)
    for app in App.objects.all():
        catalogue.app_names[app.pk] = app.name
        catalogue.app_xml[app.pk] = render_app(app.name, app.user_friendly_name, app.is_non_cpu_intensive)
        if not app.is_deprecated:
            typical, rank, first_place, last_place, last_rank = queues.get(app.pk, (None, None, None, None, None))
            if app.is_beta and volunteers is None:
                volunteers = _all_testers()
            of_sizes = catalogue.lanes[app.pk].sizes.values() if app.pk in catalogue.lanes else ()
            typical = typical or next(iter(of_sizes), None) or fpops_in_lanes.get(app.pk)
            catalogue.apps[app.pk] = replace(
                _app(app, typical, (first_place or 0, last_place or 0), (rank, last_rank)),
                keywords=keywords.kin(about.get(app.pk, ())),
                testers=volunteers if app.is_beta else None,
            )
            if rank is not None:
                catalogue.heads[app.pk] = rank, first_place
    rows = list(AppVersion.objects.select_related("platform", "app", "beta_test").prefetch_related("files__file"))
    of_versions = _volunteers(rows)
    for row in rows:
        version = version_facts(row, of_versions)
        catalogue.versions[row.pk] = version
        catalogue.versions_by_app.setdefault(row.app_id, []).append(version)
        files = [
            ClientFile(
                version_file.file.name,
                version_file.file.nbytes,
                version_file.file.md5,
                version_file.file.signature,
                version_file.file.is_executable or version_file.is_main_program,
                version_file.open_name,
                version_file.is_main_program,
                version_file.is_copied,
            )
            for version_file in row.files.all()
        ]
        catalogue.version_files[row.pk] = render_version_refs(files, _start(row))
        catalogue.version_xml[row.pk] = render_version_files(files, addresses.download_url(""))
    for plan in PlanClassRow.objects.all():
        catalogue.plan_classes[plan.name] = plan_class_facts(plan)
    return replace(catalogue, about_project_xml=catalogue.gui_urls_xml + render_unused_types(_unused_types(catalogue)))


def _unused_types(catalogue: Catalogue) -> list[str]:
    """Return the processor types without a program; empty while the project has no program at all, during setup."""
    used = {v.processor_type for v in catalogue.versions.values() if not v.is_deprecated and v.app_id in catalogue.apps}
    return [type_.value for type_ in ProcessorType if type_ not in used] if used else []


def _app(app: App, typical: float | None, places: tuple[int, int], ranks: tuple[int | None, int | None]) -> AppFacts:
    return AppFacts(
        id=app.pk,
        name=app.name,
        weight=app.weight,
        max_jobs_per_day_init=app.max_jobs_per_day_init,
        rules=rules_of(app),
        is_adaptive=app.adaptive_replication,
        one_result_per_user=app.one_result_per_user,
        is_non_cpu_intensive=app.is_non_cpu_intensive,
        max_jobs_in_progress=app.max_jobs_in_progress,
        max_gpu_jobs_in_progress=app.max_gpu_jobs_in_progress,
        max_jobs_per_rpc=app.max_jobs_per_rpc,
        deadline_extension_secs=app.deadline_extension_secs,
        max_extended_secs=app.max_extended_secs,
        typical_fpops=typical,
        first_place=places[0],
        last_place=places[1],
        first_rank=ranks[0],
        last_rank=ranks[1],
        redundancy=Redundancy(app.homogeneous_redundancy),
        is_homogeneous_version=app.homogeneous_app_version,
        reliable_turnaround_secs=app.reliable_turnaround_secs,
        size_limits=tuple(app.size_limits),
    )


def _volunteers(rows: list[AppVersion]) -> frozenset[int]:
    """Return the volunteers who agreed to test new versions; read only while they test one."""
    tests = [row.beta_test for row in rows if hasattr(row, "beta_test") and not row.is_deprecated]
    if not any(test.with_volunteers for test in tests):
        return frozenset()
    return _all_testers()


def _all_testers() -> frozenset[int]:
    return frozenset(BetaTester.objects.values_list("user_id", flat=True))


def _read_lanes(catalogue: Catalogue) -> dict[int, float]:
    """Store the lanes with waiting jobs, and the teams of those for teams; return the size of such a job, by app."""
    with connection.cursor() as cursor:
        cursor.execute(READ_LANES)
        rows: list[tuple[int, list[int], float | None, bool | None]] = cursor.fetchall()
    teams: set[int] = set()
    for app_id, numbers, _, is_for_all_now in rows:
        targeted = [number for number in numbers if number >= FIRST_TARGETED]
        has_more = len(targeted) > MAX_TARGETED_LANES
        catalogue.lanes[app_id] = LaneIndex.of(numbers, has_more_targeted=has_more)
        catalogue.lanes[app_id].is_for_all_now = bool(is_for_all_now)
        # Among those that are not listed there may be one for each team.
        teams.update(lane.target_id for lane in map(Lane.of, targeted) if lane.kind == LaneKind.TEAM or has_more)
    if teams:
        members = Membership.objects.all()
        if all(index.targeted is not None for index in catalogue.lanes.values()):
            members = members.filter(team__in=teams)
        catalogue.teams.update(members.values_list("user_id", "team_id"))
    return {app_id: fpops for app_id, _, fpops, _ in rows if fpops is not None}


def _read_sizes(catalogue: Catalogue) -> None:
    """Store the usual size of the waiting jobs in each size class."""
    with connection.cursor() as cursor:
        cursor.execute(READ_SIZES, [LOOKED_AT])
        for app_id, lane, typical in cursor.fetchall():
            catalogue.lanes.setdefault(app_id, LaneIndex()).sizes[lane] = typical


def _read_blocks(catalogue: Catalogue) -> None:
    for block in WorkBlock.objects.all():
        if block.host_id is not None:
            catalogue.blocked_hosts[block.host_id] = block.reason
        elif block.user_id is not None:
            catalogue.blocked_users[block.user_id] = block.reason


def _testers(row: AppVersion, volunteers: frozenset[int]) -> frozenset[int] | None:
    if not hasattr(row, "beta_test"):
        return None
    test = row.beta_test
    own = frozenset() if test.begun_by_id is None else frozenset([test.begun_by_id])
    return own | volunteers if test.with_volunteers else own


def _start(row: AppVersion) -> VersionStart:
    return VersionStart(
        row.api_version, row.cmdline, row.is_wrapper, row.needs_network, row.dont_throttle, row.file_prefix
    )


def version_facts(row: AppVersion, volunteers: frozenset[int] = frozenset()) -> Version:
    """Convert a version into the facts of the sending rules; ``volunteers``: those who agreed to test."""
    return Version(
        id=row.pk,
        app_id=row.app_id,
        platform=row.platform.name,
        version_num=row.version_num,
        plan_class=row.plan_class,
        processor_type=row.processor_type,
        avg_ncpus=row.avg_ncpus,
        gpu_usage=row.gpu_usage,
        min_gpu_ram_bytes=row.min_gpu_ram_bytes,
        is_deprecated=row.is_deprecated or row.platform.is_deprecated,
        min_client=row.min_client_version,
        max_client=row.max_client_version,
        pfc=Average(row.pfc_n, row.pfc_avg),
        testers=_testers(row, volunteers),
    )


def plan_class_facts(row: PlanClassRow) -> PlanClassRules:
    """Convert a plan class into the facts of the sending rules."""
    return PlanClassRules(
        name=row.name,
        processor_type=row.processor_type,
        min_ncpus=row.min_ncpus,
        max_ncpus=row.max_ncpus,
        cpu_features=frozenset(row.cpu_features.replace(",", " ").split()),
        min_gpu_ram_bytes=row.min_gpu_ram_bytes,
        min_driver=row.min_driver_version,
        min_capability=row.min_compute_capability,
        needs_opencl=row.needs_opencl,
        nthreads_cmdline=row.nthreads_cmdline,
        projected_flops_scale=row.projected_flops_scale,
        needs_containers=frozenset([DOCKER] * row.needs_docker + [WSL] * row.needs_wsl),
        min_client=row.min_client_version,
        max_client=row.max_client_version,
        max_driver=row.max_driver_version,
        max_capability=row.max_compute_capability,
        min_cuda=row.min_cuda_version,
        max_cuda=row.max_cuda_version,
        min_opencl=row.min_opencl_version,
        max_opencl=row.max_opencl_version,
        min_gpu_flops=row.min_gpu_peak_flops,
        max_gpu_flops=row.max_gpu_peak_flops,
        needs_doubles=row.needs_double_precision,
        gpu_ram_used_bytes=row.gpu_ram_used_bytes,
        cpu_share=row.cpu_share,
        patterns=(row.os_pattern, row.cpu_vendor_pattern, row.cpu_model_pattern),
        gpu_pattern=row.gpu_model_pattern,
        min_os=row.min_os_version,
        max_os=row.max_os_version,
        min_libc=row.min_libc_version,
        needs_virtualbox=row.needs_virtualbox,
        needs_acceleration=row.needs_vm_acceleration,
        min_virtualbox=row.min_virtualbox_version,
        max_virtualbox=row.max_virtualbox_version,
        excluded_virtualbox=frozenset(map(int, row.excluded_virtualbox_versions.split())),
        avg_ncpus=row.avg_ncpus,
        gpu_usage=row.gpu_usage,
    )


cache: Final = TimedCache("programs", lambda: _load(), KEPT_SECS)
fresh: Final = cache.fresh
forget: Final = cache.forget

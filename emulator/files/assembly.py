"""Build a scenario from the content of a client's files, with notes on omissions and assumptions. Pure."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    MAX_FLOP,
    MIN_JOB_FLOP,
    App,
    ExcludedGpu,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    StartJob,
    StartState,
    Version,
)
from emulator.files.client_settings import AppConfig, CcConfig, GpuExclusion
from emulator.files.client_state import (
    DEFAULT_JOB_FLOP,
    DEFAULT_LATENCY_SECS,
    STATE_FILE,
    ClientState,
    StateApp,
    StateProject,
    StateVersion,
)
from emulator.files.job_log import JOB_LOG, JobLog, LoggedJob, RunTimes, by_app, run_times
from emulator.files.owner import time_of_week, with_use, without_hours
from emulator.files.present_state import Sizing, backoffs, start_job
from emulator.files.present_tasks import StateJob
from emulator.files.sections import ScenarioFileError
from emulator.files.time_log import TIME_LOG_FILE, TimeLog
from portal.languages.messages import Message, at_place

NOTES_MAX: Final = 50
MIN_RUN_SECS: Final = 1e-3  # limits of a run time in a Scenario


class Assembly:
    """The steps from the content of the files to a scenario, with their notes."""

    def __init__(
        self, state: ClientState, preferences: Preferences, cc_config: CcConfig, app_configs: list[AppConfig]
    ) -> None:
        self.state = state
        self.cc_config = cc_config
        self.preferences = replace(preferences, report_at_once=cc_config.report_at_once)
        self.notes: dict[Message, None] = {}
        self.processors = self._processors()
        self.logged: dict[int, list[LoggedJob]] = {}  # by the project's position
        self.by_app: dict[int, dict[str, list[LoggedJob]]] = {}
        self.size_factors: dict[tuple[int, str], float] = {}  # real work per server's estimate, of logged applications
        if state.now:
            moment = datetime.fromtimestamp(state.now, UTC)
            self._note(Message("begins_at", moment=f"{moment:%Y-%m-%d %H:%M}"))
        self.configs: dict[int, AppConfig] = {}
        for config in app_configs:
            self._place(config)

    def scenario(self) -> Scenario:
        """Assemble the scenario. Raises ScenarioError."""
        for what in self.cc_config.left_out:
            self._note(at_place("cc_config.xml", what))
        names = self._project_names()
        projects: list[Project] = []
        jobs: list[StartJob] = []
        for index, project_state in enumerate(self.state.projects):
            apps, versions = self._apps(index, project_state)
            if not apps:
                self._note(Message("left_out_project", name=names[index]))
                continue
            projects.append(self._project(index, project_state, names[index], apps))
            jobs += self._jobs(index, names[index], project_state, apps, versions)
        if not projects:
            raise self.state.projects[0].section.error("project", "no_usable_project")
        if all(project.share == 0 for project in projects):
            raise self.state.projects[0].section.error("resource_share", "no_share")
        host = Host(
            processors=tuple(self.processors.values()),
            on=self.state.on,
            connected=self.state.connected,
            active=self.state.active,
            gpu_active=self.state.gpu_active,
            name=self.state.host_name,
            ram_bytes=self.state.ram_bytes,
        )
        host = self._with_owner(host)
        week_secs = self._time_of_week()
        notes = tuple(self.notes)
        try:
            return Scenario(host, tuple(projects), self.preferences, tuple(jobs), notes=notes, week_secs=week_secs)
        except ScenarioError as error:  # a fault that belongs to no single line
            raise ScenarioFileError(STATE_FILE, error.field, 0, error.why) from None

    def _with_owner(self, host: Host) -> Host:
        if self.state.is_active_measured or host.active.trace:
            return without_hours(host, self.preferences, self._note)
        return with_use(host, self.preferences, self.cc_config.exclusive, self._note)

    def _time_of_week(self) -> float:
        if self.state.now:
            return time_of_week(self.state.now, self.state.utc_offset_secs)
        if not (self.preferences.compute_hours.is_always and self.preferences.network_hours.is_always):
            self._note(Message("begins_on_sunday"))
        return 0.0

    def follow(self, log: TimeLog) -> None:
        """Make the computer's availability repeat the client's log."""
        self._note_bad_lines(TIME_LOG_FILE, log.bad_lines)
        if not log.days:
            self._note(Message("time_log_too_short"))
            return
        length = log.days * DAY_SECS
        state = self.state
        state.on = replace(state.on, trace=log.on, trace_secs=length)
        state.active = replace(state.active, trace=log.active, trace_secs=length)
        state.connected = replace(state.connected, trace=log.connected, trace_secs=length)
        self._note(Message("follows_time_log", days=log.days))

    def measure(self, file: str, log: JobLog) -> None:
        """Take the run times of a project's tasks from its job log."""
        self._note_bad_lines(file, log.bad_lines)
        match = JOB_LOG.fullmatch(file)
        folder = match[1] if match is not None else ""
        places = [at for at, project in enumerate(self.state.projects) if url_folder(project.url) == folder]
        if not places:
            self._note(Message("no_effect_folder", file=file[:100], folder=folder[:100]))
        for at in places:
            self.logged[at] = log.jobs

    def _note_bad_lines(self, file: str, bad: tuple[int, ...]) -> None:
        if bad:
            self._note(Message("left_out_lines", file=file[:100], number=len(bad), line=str(bad[0])))

    def _note(self, note: Message) -> None:
        if len(self.notes) < NOTES_MAX:
            self.notes[note] = None

    def _processors(self) -> dict[str, Processor]:
        processors = {processor.kind: processor for processor in self.state.processors}
        if self.cc_config.ncpus:
            processors[CPU] = replace(processors[CPU], instances=self.cc_config.ncpus)
        for kind in self.state.unknown_gpus:
            self._note(Message("left_out_gpu", kind=kind))
        if self.cc_config.no_gpus and len(processors) > 1:
            processors = {CPU: processors[CPU]}
            self._note(Message("left_out_gpus"))
        return processors

    def _project_names(self) -> list[str]:
        """Return names, each with its project's address where two projects have the same."""
        plain = [project.name for project in self.state.projects]
        names = [
            project.name if plain.count(project.name) == 1 else f"{project.name[:120]} ({project.url[:120]})"
            for project in self.state.projects
        ]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise self.state.projects[index].section.error("master_url", "project_twice")
        return names

    def _place(self, config: AppConfig) -> None:
        """Decide which projects an app_config.xml is for."""
        folder = PurePosixPath(config.source.file).parent.name
        if folder:
            places = [at for at, project in enumerate(self.state.projects) if url_folder(project.url) == folder]
            missing = Message("no_effect_folder", file=config.source.file[:100], folder=folder[:100])
        else:
            projects = enumerate(self.state.projects)
            places = [at for at, project in projects if config.apps <= project.apps.keys()]
            missing = Message("no_effect_apps", file=config.source.file[:100])
            if not config.apps and len(self.state.projects) > 1:
                places, missing = [], Message("no_effect_no_app", file=config.source.file[:100])
        if not places:
            self._note(missing)
        for at in places:
            self.configs[at] = config

    def _project(self, index: int, project_state: StateProject, name: str, apps: list[App]) -> Project:
        config = self.configs.get(index)
        now = self.state.now
        return Project(
            name=name,
            share=project_state.share,
            apps=tuple(apps),
            available=project_state.available,
            standing=project_state.standing,
            suspended=project_state.suspended,
            no_new_tasks=project_state.no_new_tasks,
            uses_dcf=project_state.uses_dcf,
            max_concurrent=config.project_max_concurrent if config else 0,
            request_delay_secs=project_state.contacts.request_delay_secs if now else 0.0,
            backoffs=backoffs(project_state.contacts, now),
            not_asked=project_state.contacts.not_asked,
            excluded_gpus=self._excluded_gpus(project_state),
        )

    def _apps(self, index: int, project_state: StateProject) -> tuple[list[App], dict[str, list[StateVersion]]]:
        """Return the applications that this computer can run, with the usable versions of each."""
        apps: list[App] = []
        used_versions: dict[str, list[StateVersion]] = {}
        for app in project_state.apps.values():
            if app.non_cpu_intensive:
                self._note(Message("left_out_idle_app", name=project_state.name, app=app.name))
                continue
            usable = [(state, self._version(index, project_state, app, state)) for state in app.versions]
            pairs = [(state, version) for state, version in usable if version is not None]
            size, estimate, latency = self._job_sizes(
                index, project_state, app, [version.flops for _, version in pairs]
            )
            for state, version in pairs:
                if size.mean / version.flops < MIN_RUN_SECS:
                    raise state.section.error("flops", "tasks_too_short")
            if not pairs:
                self._note(Message("left_out_app", name=project_state.name, app=app.name))
                continue
            used_versions[app.name] = [state for state, _ in pairs]
            config = self.configs.get(index)
            limit = config.max_concurrent.get(app.name, app.max_concurrent) if config else app.max_concurrent
            versions = tuple(version for _, version in pairs)
            memory = app.working_set_bytes
            apps.append(
                App(app.name, versions, size, Normal(estimate), latency, app.weight, limit, working_set_bytes=memory)
            )
        return apps, used_versions

    def _job_sizes(
        self, index: int, project_state: StateProject, app: StateApp, speeds: list[float]
    ) -> tuple[Normal, float, float]:
        """Return size, estimate and time limit of an application's new jobs: from an emulator's own elements, else
        sizes from its job log, else from its first job.
        """
        first = next((job for job in project_state.jobs if job.app == app.name), None)
        estimate = app.estimate_flop
        if estimate is None:
            workunits = (flop for name, flop in project_state.workunits.values() if name == app.name)
            estimate = next(workunits, app.size.mean if app.size else DEFAULT_JOB_FLOP)
            if project_state.uses_dcf:
                estimate = min(max(estimate * project_state.dcf, MIN_JOB_FLOP), MAX_FLOP)
        latency = app.latency_secs
        if latency is None:
            latency = first.latency_secs if first and first.latency_secs >= 1 else DEFAULT_LATENCY_SECS
        times = None if app.size else self._run_times(index, project_state, app, speeds)
        if times is not None:
            self.size_factors[index, app.name] = times.per_estimate
            return Normal(times.mean_flop, times.std_dev_flop), estimate, latency
        return app.size or Normal(estimate), estimate, latency

    def _run_times(
        self, index: int, project_state: StateProject, app: StateApp, speeds: list[float]
    ) -> RunTimes | None:
        """Return the run times of the application's tasks in the project's job log, if it has enough of them."""
        if index not in self.by_app:
            tasks = {job.name: job.app for job in project_state.jobs}
            tasks |= {name: app for name, (app, _) in project_state.workunits.items()}
            self.by_app[index] = by_app(self.logged.get(index, []), tasks, project_state.apps)
        of_app, of_project = self.by_app[index].get(app.name, []), self.by_app[index].get("", [])
        times = run_times(of_app, speeds)
        if times is not None:
            self._note(Message("sizes_of_app", name=project_state.name, app=app.name, number=times.njobs))
            return times
        times = run_times(of_project, speeds)
        if times is not None:
            self._note(Message("sizes_of_project", name=project_state.name, app=app.name, number=times.njobs))
        return times

    def _version(self, index: int, project_state: StateProject, app: StateApp, state: StateVersion) -> Version | None:
        """Return the version with its owner's settings and a speed; None when the computer has no processor for it."""
        version = state.version
        if version.gpu and (version.gpu not in self.processors or self._excluded(project_state, app, version.gpu)):
            return None
        config = self.configs.get(index)
        if config is not None:
            version = _with_usage(version, config, app.name, state.plan_class)
        if version.flops < 1:
            cpu_flops = version.cpus * self.processors[CPU].counted_flops
            gpu_flops = version.gpus * self.processors[version.gpu].counted_flops if version.gpu else 0
            version = replace(version, flops=cpu_flops + gpu_flops)
        return version

    def _excluded(self, project_state: StateProject, app: StateApp, kind: str) -> bool:
        return any(
            exclusion.device is None and exclusion.kind in ("", kind) and exclusion.app in ("", app.name)
            for exclusion in self._exclusions(project_state)
        )

    def _exclusions(self, project_state: StateProject) -> list[GpuExclusion]:
        """Return the exclusions of a project."""
        urls = ("", project_state.url.rstrip("/"))
        return [exclusion for exclusion in self.cc_config.exclusions if exclusion.url.rstrip("/") in urls]

    def _excluded_gpus(self, project_state: StateProject) -> tuple[ExcludedGpu, ...]:
        return tuple(
            ExcludedGpu(kind, exclusion.device, exclusion.app)
            for exclusion in self._exclusions(project_state)
            if exclusion.device is not None
            for kind in self.processors
            if kind != CPU and exclusion.kind in ("", kind)
        )

    def _jobs(
        self,
        index: int,
        name: str,
        project_state: StateProject,
        apps: list[App],
        versions: dict[str, list[StateVersion]],
    ) -> list[StartJob]:
        """Return its present tasks, in order of arrival."""
        jobs: list[StartJob] = []
        for job in project_state.jobs:
            version = _version_of(job, versions.get(job.app, []))
            app = next((app for app in apps if app.name == job.app), None)
            if version is None or app is None:
                self._note(Message("left_out_tasks", name=name))
                continue
            factor = project_state.dcf if project_state.uses_dcf else 1.0
            sizing = Sizing(app.versions[version].flops, factor, self.size_factors.get((index, app.name), factor))
            jobs.append(start_job(job, name, version, sizing, self.state.now))
            if job.transfers == "download":
                self._note(Message("tasks_downloading", name=name))
            elif job.transfers == "upload":
                self._note(Message("tasks_uploading", name=name))
            if job.state is StartState.SUSPENDED:
                self._note(Message("tasks_suspended", name=name))
        return jobs


def _with_usage(version: Version, config: AppConfig, app: str, plan_class: str) -> Version:
    usages = [config.version_usage.get((app, plan_class), (None, None))]
    if version.gpu:
        usages.insert(0, config.gpu_usage.get(app, (None, None)))
    for gpus, cpus in usages:
        if gpus is not None and version.gpu:
            version = replace(version, gpus=gpus)
        if cpus is not None:
            version = replace(version, cpus=cpus)
    return version


def _version_of(job: StateJob, versions: list[StateVersion]) -> int | None:
    """Return the version that the job is for: by number and plan class, and platform if several have these."""
    same = [
        index
        for index, version in enumerate(versions)
        if version.version_num == job.version_num and version.plan_class == job.plan_class
    ]
    exact = [index for index in same if versions[index].platform == job.platform]
    return next(iter(exact or same), None)


def url_folder(url: str) -> str:
    """Return the name of a project's folder in the client's data folder: its address without the scheme, made
    readable.
    """
    without_scheme = url.split("://", 1)[-1].rstrip("/")
    return re.sub(r"[^A-Za-z0-9.\-_]", "_", without_scheme)

"""The tables of credit, by subject: apps and versions, work, host records, sums of credit, statistics, and previews of
changed settings.

An undefined quantity is NULL, never 0.
"""

from credit.engine.facts import CreditSystem, ProcessorType, ReplicaRule
from credit.engine.rules import MAX_CREDIT, RuleSet
from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState, ValidateState, WorkunitError
from credit.models.apps import App, Comparison, VersionAverage
from credit.models.archived import ArchivedDay
from credit.models.changes import CreditChange, HostRecordSnapshot, StatisticsSnapshot
from credit.models.common import JOB_NAME, SAFE_NAME
from credit.models.export import ExportConsent, GoneHost, GoneUser, StatisticsExport
from credit.models.grants import HostCredit, UserCredit
from credit.models.host_records import HostAppVersion
from credit.models.openings import AppOpening, HostOpening, TeamOpening, UserOpening
from credit.models.outcomes import ResultHour, ResultHourMark
from credit.models.pairs import ConfirmingPair
from credit.models.previews import LoggedPass, Preview
from credit.models.statistics import AppSnapshot, AppVersionSnapshot
from credit.models.teams import Membership, Team, TeamType
from credit.models.versions import PROCESSOR_TYPES, AppVersion, Platform
from credit.models.work import (
    MAX_FLOPS_COUNT,
    MAX_RESULTS_PER_WORKUNIT,
    WORKUNIT_ERRORS,
    Batch,
    PartState,
    Result,
    ResultPart,
    Workunit,
)

__all__ = [
    "JOB_NAME",
    "MAX_CREDIT",
    "MAX_FLOPS_COUNT",
    "MAX_RESULTS_PER_WORKUNIT",
    "PROCESSOR_TYPES",
    "SAFE_NAME",
    "WORKUNIT_ERRORS",
    "App",
    "AppOpening",
    "AppSnapshot",
    "AppVersion",
    "AppVersionSnapshot",
    "ArchivedDay",
    "AssimilateState",
    "Batch",
    "Comparison",
    "ConfirmingPair",
    "CreditChange",
    "CreditSystem",
    "ExportConsent",
    "FileDeleteState",
    "GoneHost",
    "GoneUser",
    "HostAppVersion",
    "HostCredit",
    "HostOpening",
    "HostRecordSnapshot",
    "LoggedPass",
    "Membership",
    "Outcome",
    "PartState",
    "Platform",
    "Preview",
    "ProcessorType",
    "ReplicaRule",
    "Result",
    "ResultHour",
    "ResultHourMark",
    "ResultPart",
    "RuleSet",
    "ServerState",
    "StatisticsExport",
    "StatisticsSnapshot",
    "Team",
    "TeamOpening",
    "TeamType",
    "UserCredit",
    "UserOpening",
    "ValidateState",
    "VersionAverage",
    "Workunit",
    "WorkunitError",
]

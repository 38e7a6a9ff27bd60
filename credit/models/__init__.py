"""Validated credit's tables, by subject: apps and versions, hosts' records, work, grants, statistics.

A quantity that is undefined is NULL, never 0.
"""

from credit.models.apps import (
    App,
    AppVersion,
    Comparison,
    CreditSystem,
    Platform,
    ProcessorType,
    ReplicaRule,
    RuleSet,
    VersionAverage,
)
from credit.models.common import MAX_CREDIT, SAFE_NAME
from credit.models.grants import HostCredit, UserCredit
from credit.models.host_records import HostAppVersion
from credit.models.statistics import AppSnapshot, AppVersionSnapshot
from credit.models.work import (
    MAX_FLOPS_COUNT,
    MAX_RESULTS_PER_WORKUNIT,
    AssimilateState,
    Batch,
    FileDeleteState,
    Outcome,
    Result,
    ServerState,
    ValidateState,
    Workunit,
    WorkunitError,
)

__all__ = [
    "MAX_CREDIT",
    "MAX_FLOPS_COUNT",
    "MAX_RESULTS_PER_WORKUNIT",
    "SAFE_NAME",
    "App",
    "AppSnapshot",
    "AppVersion",
    "AppVersionSnapshot",
    "AssimilateState",
    "Batch",
    "Comparison",
    "CreditSystem",
    "FileDeleteState",
    "HostAppVersion",
    "HostCredit",
    "Outcome",
    "Platform",
    "ProcessorType",
    "ReplicaRule",
    "Result",
    "RuleSet",
    "ServerState",
    "UserCredit",
    "ValidateState",
    "VersionAverage",
    "Workunit",
    "WorkunitError",
]

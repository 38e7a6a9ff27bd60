"""The account manager's tables by subject: projects, choices, ledger, sums, statistics, tasks, news, files.

Amounts are whole numbers of 1e-6 (what a client prints), in the order of ``amounts.KINDS`` where they are arrays.
"""

from accounting.models.accounts import AccountSettings, OwnAccount, UserProject
from accounting.models.asked import ProjectChange
from accounting.models.files import DataCopy, DataCopyPart

# Migrations name the two functions that begin with an underscore.
from accounting.models.ledger import (
    Answer,
    Day,
    HostClient,
    HostLedger,
    HostProject,
    ModelSpeed,
    Note,
    _no_allowance,
    _zeros,
)
from accounting.models.months import BestDay, ClosedMonths, Month
from accounting.models.news import Announcement
from accounting.models.projects import (
    PROCESSOR_TYPES,
    Project,
    ProjectAddress,
    ProjectKeyword,
    ProjectProfile,
    ProjectStanding,
    ProjectTrouble,
    ProjectVersion,
    keyword_choices,
    processor_name,
)
from accounting.models.settlement import ProjectRatio, Settlement
from accounting.models.statistics import AccountTotal, GrantedDay, GrantedTotal, StatisticsImport
from accounting.models.sums import ErasedDay, ProjectDay
from accounting.models.tasks import FollowedTask, TaskList, TaskSource

__all__ = [
    "PROCESSOR_TYPES",
    "AccountSettings",
    "AccountTotal",
    "Announcement",
    "Answer",
    "BestDay",
    "ClosedMonths",
    "DataCopy",
    "DataCopyPart",
    "Day",
    "ErasedDay",
    "FollowedTask",
    "GrantedDay",
    "GrantedTotal",
    "HostClient",
    "HostLedger",
    "HostProject",
    "ModelSpeed",
    "Month",
    "Note",
    "OwnAccount",
    "Project",
    "ProjectAddress",
    "ProjectChange",
    "ProjectDay",
    "ProjectKeyword",
    "ProjectProfile",
    "ProjectRatio",
    "ProjectStanding",
    "ProjectTrouble",
    "ProjectVersion",
    "Settlement",
    "StatisticsImport",
    "TaskList",
    "TaskSource",
    "UserProject",
    "_no_allowance",
    "_zeros",
    "keyword_choices",
    "processor_name",
]

"""The project server's tables, by subject: files, programs, facts about hosts, work, the archive.

Apps, workunits and results belong to the credit app (credit.models).
"""

from scheduler.keyword_models import AppKeyword
from scheduler.models.archive import ArchivedTask, ArchivedWorkunit
from scheduler.models.files import (
    FormerOutput,
    FormerUploadKey,
    InputUpload,
    KeptOutput,
    PendingFile,
    StickyFile,
    StoredFile,
    Upload,
    VersionFile,
)
from scheduler.models.hosts import HostRecord, UserPreferences, WorkBlock
from scheduler.models.programs import BetaTest, BetaTester, DraftFile, KeyChange, PlanClass, ReleaseDraft
from scheduler.models.submitters import Submitter, SubmitterPlace
from scheduler.models.work import (
    Generation,
    JobLease,
    RetryEntry,
    Step,
    SubmissionDraft,
    Trickle,
    TrickleDown,
    new_request_id,
)

__all__ = [
    "AppKeyword",
    "ArchivedTask",
    "ArchivedWorkunit",
    "BetaTest",
    "BetaTester",
    "DraftFile",
    "FormerOutput",
    "FormerUploadKey",
    "Generation",
    "HostRecord",
    "InputUpload",
    "JobLease",
    "KeptOutput",
    "KeyChange",
    "PendingFile",
    "PlanClass",
    "ReleaseDraft",
    "RetryEntry",
    "Step",
    "StickyFile",
    "StoredFile",
    "SubmissionDraft",
    "Submitter",
    "SubmitterPlace",
    "Trickle",
    "TrickleDown",
    "Upload",
    "UserPreferences",
    "VersionFile",
    "WorkBlock",
    "new_request_id",
]

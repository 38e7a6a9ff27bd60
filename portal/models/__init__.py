"""The tables that all apps know, by subject: people, computers, keys, mails, security events, audit, operation."""

# Migrations refer to new_token.
from portal.models.audit import MAX_REASON_LENGTH, Change
from portal.models.common import MAX_NAME_CHARS, new_token
from portal.models.computers import Host, Venue
from portal.models.consents import ConsentEvent
from portal.models.joining import HostLimitRequest, JoinToken
from portal.models.keys import ApiToken, ClientKey, LoginToken
from portal.models.mails import DEFAULT_SILENT_DAYS, MAX_SILENT_DAYS, STATUS_DAYS, MailChoice, SentMail, WaitingMail
from portal.models.operation import MaintenanceRun, OperatingFigure, OperatingTable
from portal.models.people import CLIENT_PASSWORD_FIELDS, User, UserManager
from portal.models.periodic import PeriodicTask
from portal.models.requested_work import RequestedWork
from portal.models.security_events import SecurityEvent
from portal.models.sessions import Session
from portal.models.signed_log import SignedEntry
from portal.models.site_texts import SiteText
from portal.models.support import Account, AccountBlock, SupportAction
from portal.models.two_persons import ConfirmationRequest

__all__ = [
    "CLIENT_PASSWORD_FIELDS",
    "DEFAULT_SILENT_DAYS",
    "MAX_NAME_CHARS",
    "MAX_REASON_LENGTH",
    "MAX_SILENT_DAYS",
    "STATUS_DAYS",
    "Account",
    "AccountBlock",
    "ApiToken",
    "Change",
    "ClientKey",
    "ConfirmationRequest",
    "ConsentEvent",
    "Host",
    "HostLimitRequest",
    "JoinToken",
    "LoginToken",
    "MailChoice",
    "MaintenanceRun",
    "OperatingFigure",
    "OperatingTable",
    "PeriodicTask",
    "RequestedWork",
    "SecurityEvent",
    "SentMail",
    "Session",
    "SignedEntry",
    "SiteText",
    "SupportAction",
    "User",
    "UserManager",
    "Venue",
    "WaitingMail",
    "new_token",
]

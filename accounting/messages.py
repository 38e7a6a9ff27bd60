"""The sentences of the account manager that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # Why a project's export could not be read (accounting/wire/statistics.py, accounting/statistics)
        "export_more_records": _("has %(number)s records, but tables.xml says %(most)s"),
        "export_tables_limit": _("larger than the limit of %(limit_nbytes)s bytes"),
        "export_begins_otherwise": _("does not begin with <%(tag)s>"),
        "export_cut_off": _("does not end with </%(tag)s>: it was cut off"),
        "export_ends_otherwise": _("does not end with </%(tag)s>: it was cut off or has a different format"),
        "export_goes_on": _("has other data after </%(tag)s>"),
        "export_without_time": _("has no update_time"),
        "export_from_future": _("update_time is in the future"),
        "export_not_a_number": _("%(field)s is not a number from %(low)s to %(high)s"),
        "export_odd_records": _(
            "%(number)s of %(all)s records are invalid; in the first one, %(field)s is not a number from %(low)s "
            "to %(high)s"
        ),
        "export_damaged": _("is not a gzip file, is damaged, or has other data after it"),
        "export_unpacked_limit": _("unpacks to more than the limit of %(limit_nbytes)s bytes"),
        "export_parts_limit": _("consists of more compressed parts than the limit of %(limit)s"),
        "export_compression_cut_off": _("was cut off: its compressed data have no end"),
        "export_record_limit": _("has a record longer than the limit of %(limit_nbytes)s bytes"),
        "export_records_limit": _("has more records than the limit of %(limit)s"),
        "export_encoding": _("is in an unsupported encoding: only UTF-8 and ISO-8859-1 are read"),
        "export_record_without_end": _("a record has no end"),
        "export_other_than_record": _("there is something else where a record should begin"),
        "export_id_twice": _("has two records with the id %(id)s"),
        "export_not_newer": _("is not newer than the export that was read in the meantime"),
        "export_replaced": _("the project made a new export in the meantime"),
        "export_read_limit": _("The export took longer than the limit of %(secs)s s"),
        # Results of asking a project about itself, or about an account there (accounting/project_setup)
        "ask_no_boinc_project": _("%(url)s answered, but not like a BOINC project (%(fault)s)."),
        "ask_error": _("%(host)s answered with an error (%(words)s)."),
        "account_no_page": _("The project has no %(page)s (%(why)s)."),
        "account_not_asked": _("The project could not be asked: %(why)s."),
        "account_refused": _("The project refused: %(words)s (error %(error_num)s)."),
        "answer_no_key": _("missing, or not 1 to %(limit)s printable characters"),
        "answer_no_boinc": _("not what a BOINC project answers"),
        "answer_no_config": _("no configuration of a BOINC project"),
        "answer_no_status": _("no status of a BOINC project"),
        "account_answer_unreadable": _("The project’s answer could not be read: %(fault)s."),
        "trial_no_page": _(
            "This project does not provide account information (it has no am_get_info.php). Test the scheduler instead."
        ),
        "trial_weak_key": _(
            "%(problem)s Some projects provide account information only for full keys, and this is a weak one. Test "
            "the scheduler instead."
        ),
        "trial_known": _("The project knows the account: number %(number)s, “%(name)s”."),
        "trial_known_of_country": _("The project knows the account: number %(number)s, “%(name)s” of %(country)s."),
        "trial_known_full": _(
            "The project knows the account: number %(number)s, “%(name)s”. This is a full key, with which the account "
            "can be changed."
        ),
        "trial_known_of_country_full": _(
            "The project knows the account: number %(number)s, “%(name)s” of %(country)s. This is a full key, with "
            "which the account can be changed."
        ),
        "trial_no_scheduler": _("The page at its master URL does not name a scheduler."),
        "trial_scheduler_address": _(
            "The scheduler could not be asked: its address on the page at the master URL is not valid."
        ),
        "trial_unencrypted": _(
            "Nothing was sent. The project is at https://, but its scheduler uses no encryption: %(url)s. Others could "
            "read the account key in transit. Ask the operators of the project for a scheduler at https://."
        ),
        "trial_scheduler_not_asked": _("The scheduler could not be asked: %(why)s."),
        "trial_scheduler_unreadable": _("The scheduler’s answer could not be read: %(fault)s."),
        "trial_accepted": _(
            "The scheduler knows the account “%(name)s” and has created a record for this test’s computer."
        ),
        "trial_accepted_with_words": _(
            "The scheduler knows the account “%(name)s” and has created a record for this test’s computer. It says: "
            "%(words)s"
        ),
        "trial_key_refused": _("The scheduler does not accept the key. It says: %(words)s"),
        "trial_key_refused_silently": _("The scheduler does not accept the key. It says nothing."),
        # Results of asking a project about tasks (accounting/running_tasks/asking.py)
        "tasks_refused": _("It answered with an error (%(words)s)."),
        "tasks_not_in_answer": _("Its answer contains no task status (%(fault)s)."),
        # A row that volunteers change too, in the audit of operators' changes (accounting/admin.py)
        "audited_account": _("account of person %(number)s at %(project)s"),
        # Why no client would attach to a URL (accounting/wire/requests.py)
        "url_scheme": _("the URL must begin with http:// or https://"),
        "url_characters": _("the URL must not contain blanks, control characters, < or >"),
        "url_host_characters": _("the URL must not contain a backslash, and its host none of @ ? #"),
        "url_host": _("the URL must have a host with a dot in it, such as example.org or 127.0.0.1"),
        "url_bytes_limit": _("the URL must not be longer than %(limit)s bytes"),
        # Why a total that a client reports cannot be used (accounting/wire/requests.py)
        "total_missing": _("%(kind)s is missing, though other totals are there"),
        "total_no_amount": _("%(kind)s is not a finite decimal number from 0 to below 1e15"),
        "total_no_count": _("%(kind)s is not an integer from 0 to below 2147483648"),
        # What clients are told, in English, and what their owners see of it (accounting/rpc/instructions.py)
        "told_to_confirm_email": _(
            "This computer gets projects once you have confirmed your e-mail address. Open the link in the e-mail that "
            "we sent you, or request another one at %(url)s"
        ),
        "told_no_project": _("There is no project for this computer; see %(url)s for the reasons"),
        "told_totals_unreadable": _(
            "The totals of %(project)s could not be read (%(detail)s). Nothing is lost: they count as soon as a report "
            "can be read"
        ),
        "told_no_reports": _(
            "BOINC on this computer does not report its work to the account manager, so no credit is estimated for it. "
            "Its tasks go on, and its projects grant their credit. BOINC 7.8 and newer versions report it"
        ),
        "told_sum_broken": _(
            "The sum %(detail)s that this client keeps for %(project)s is not a number, and stays so until the project "
            "is detached and attached again, once its tasks are finished. Until then it does not count; all else does"
        ),
    }
)

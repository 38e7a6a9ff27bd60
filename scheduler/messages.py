"""The sentences of the project server that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # Parts of a computer's description that are not believed (scheduler/rpc/host_record.py)
        "reported_above_believed": _("%(field)s is %(claimed)s and counts as %(most)s, the accepted maximum"),
        "reported_gpu_speed": _("%(field)s is %(claimed)s, so its speed is not known; tasks get average credit"),
        # Errors in a job's report (scheduler/rpc/reports.py)
        "output_missing": _("%(name)s was not uploaded"),
        "output_refused": _("%(name)s could not be uploaded: %(reason)s"),
        "output_differs": _("%(name)s has a different MD5 on the computer than here"),
        "reported_run_time": _("final_elapsed_time is %(secs)s s, but the job was only out for %(most_secs)s s"),
        "job_lost": _("The computer no longer has this job"),
        # Why a trickle-up message was of no use (scheduler/rpc/trickles.py)
        "trickle_unfinished": _("Unfinished attempts: %(number)s."),
        "trickle_abandoned": _("Given up: its function was called %(number)s times and never returned; see the log."),
        "trickle_too_slow": _("The function that takes this app’s messages did not finish in time."),
        "trickle_without_fields": _("There is no <elapsed_time> or no <result_name> in the message."),
        "trickle_of_other_job": _("The message names a different job than the one that sent it."),
        "trickle_no_number": _("<elapsed_time> is not a number."),
        "trickle_without_credit": _(
            "No credit is due now: the job is over, the run time was credited, the computer cannot have done more, or "
            "the claim is too uncertain before the final report."
        ),
        "trickle_failed": _("The function that takes this app’s messages failed; see the log."),
        # Why a running job cannot be sent a message (scheduler/submission/job_messages.py)
        "trickle_down_text": _(
            "not a text of 1 to %(nbytes)s bytes without <trickle_down>, </trickle_down>, <result_name> and <time>"
        ),
        "trickle_down_not_running": _("the job is not in progress"),
        "trickle_down_limit": _(
            "%(number)s messages to this job are already waiting; its computer has not received them yet"
        ),
        # Why a version cannot get another state (scheduler/engine/release_states.py, scheduler/releases/rollout.py)
        "test_not_possible": _("test is not possible: the state is %(state)s"),
        "release_not_possible": _("release is not possible: the state is %(state)s"),
        "withdraw_not_possible": _("withdraw is not possible: the state is %(state)s"),
        "no_older_version": _("there is no older version to go back to, or this one is not released to all"),
        "state_draft": _("draft"),
        "state_beta": _("in test"),
        "state_released": _("released"),
        "state_withdrawn": _("withdrawn"),
        # What is wrong with a submission (scheduler/wire/job_*.py, scheduler/submission)
        "table_line": _("line %(number)s"),
        "name_rule": _(
            "at most %(number)s letters (A to Z, a to z), digits, _ . and -, starting with a letter or digit and "
            "without two dots in a row"
        ),
        "job_name_rule": _(
            "at most %(number)s letters (A to Z, a to z), digits, _ . # @ and -, not starting with - and without two "
            "dots in a row"
        ),
        "app_not_yours": _("your account may not submit jobs of %(app)s; ask the operators of this site"),
        "priority_limit": _("at most %(most)s for your account; a lower one puts a job behind your others"),
        "deadline_limit": _("at least %(least_secs)s s for a job of this size"),
        "open_jobs_limit": _(
            "your account’s open jobs (%(number)s) and these (%(added)s) would be more than %(most)s; submit them when "
            "some have ended"
        ),
        "open_fpops_limit": _(
            "your account’s open jobs (%(fpops)s FLOPs) and these (%(added)s) would need more than %(most)s FLOPs; "
            "submit them when some have ended"
        ),
        "request_id_reserved": _("must not begin with %(prefix)s; the site uses such ids itself"),
        "batch_closed": _("batch %(number)s is cancelled or retired, and takes no more jobs"),
        "batch_unfinished": _("Batch %(number)s still has jobs to do."),
        "batch_without_failures": _("Batch %(number)s has no failed jobs that can be submitted again."),
        "upload_gone": _("the upload is no longer here; upload it again"),
        "table_limit": _("the table is too long; the limit is %(nbytes)s bytes"),
        "table_no_text": _("the table is not UTF-8 text: %(reason)s"),
        "table_empty": _("the table is empty; its first line names the columns"),
        "too_many_jobs": _("more than %(number)s jobs"),
        "too_many_cells": _("%(number)s cells, but the first line names %(wanted)s columns"),
        "no_csv": _("not comma-separated values: %(reason)s"),
        "unknown_field": _("unknown. Known: %(names)s"),
        "named_twice": _("named twice"),
        "archive_unreadable": _("this is not a readable ZIP archive: %(reason)s"),
        "archive_files_limit": _("%(number)s files in the archive; the limit is %(most)s"),
        "archive_unpacked_limit": _("unpacked they have %(nbytes)s bytes; the limit is %(most_nbytes)s"),
        "archive_twice": _("twice in the archive"),
        "archive_entry_damaged": _("damaged in the archive: %(reason)s"),
        "archive_input_damaged": _("%(name)s is damaged in the archive: %(reason)s"),
        "archive_link": _("not an ordinary file but a link or something similar"),
        "archive_encrypted": _("encrypted"),
        "archive_method": _("not compressed by the usual method (deflate)"),
        "archive_path": _("not a path of at most %(number)s printable characters without spaces, \\ and :"),
        "archive_path_outside": _("its path leads out of the archive"),
        "file_limit": _("%(nbytes)s bytes; the limit is %(most_nbytes)s"),
        "no_utf8": _("not UTF-8 text: %(reason)s"),
        "app_closed": _("%(app)s takes no more jobs"),
        "request_id_used": _("was used for another submission; give this one a different id"),
        "no_stored_file": _(
            "there is no stored file %(name)s; upload it over the REST API, or use manage.py store_file"
        ),
        "storage_lost": _("the storage has lost %(name)s"),
        "no_list_of_jobs": _("a list of 1 to %(number)s jobs"),
        "job_name_used": _("%(name)s is the name of an earlier job"),
        "job_name_twice": _("%(name)s is the name of another job; jobs without a name are numbered"),
        "field_missing": _("missing, here and in the defaults"),
        "less_than": _("%(value)s is less than %(name)s, %(least)s"),
        "no_table_of_fields": _("not a table of fields"),
        "no_number_of_flops": _("not a number from 1 to below %(most)s"),
        "one_computer": _(
            "more than 1, but the job is for one computer or volunteer alone, and nobody else can confirm its result"
        ),
        "not_with": _("not together with %(name)s, which already says which computers a job is for"),
        "no_size_class": _("the app has %(number)s size classes, and they are numbered from 0"),
        "no_size_classes": _("jobs of this app have no size classes; operators set their number"),
        "target_given": _("%(name)s is given, too; a job has one target"),
        "no_target": _("there is no %(kind)s with the number %(number)s"),
        "target_computer": _("computer"),
        "target_person": _("volunteer"),
        "target_team": _("team"),
        "no_such_version": _("the app has no version with the number %(number)s that computers get"),
        "nobody_to_reach": _("no computer of this target has asked for work within %(days)s days"),
        "too_many_made": _("one for each computer would be %(number)s jobs; the limit is %(most)s"),
        "no_credit": _("not a number from 0 to %(most)s"),
        "no_command_line": _("not a line of at most 2000 characters"),
        "no_name": _("not a name of %(rule)s"),
        "no_whole_number": _("not a whole number from %(low)s to %(high)s"),
        "no_list_of_files": _("not a list of at most %(number)s files"),
        "no_table_of": _("not a table of %(names)s"),
        "no_file_url": _(
            "not an http or https address of at most %(number)s characters without user, & and quotes, or a list of at "
            "most %(most)s"
        ),
        "only_with_name": _("only for a stored file"),
        "only_with_url": _("only for a file that has a url"),
        "host_not_allowed": _(
            "computers may not fetch files from %(host)s; an operator can add it to REMOTE_INPUT_HOSTS"
        ),
        "open_name_twice": _("%(name)s: the job also has the file %(other)s, and only one of them can exist"),
        "named_as_output": _("%(name)s: outputs of the job %(job)s have such names, and computers would mix them up"),
        "open_name_taken": _("%(name)s: BOINC has its own file with this name there"),
        "disk_bound_limit": _("%(nbytes)s bytes, but the input files alone have %(inputs_nbytes)s"),
        "no_md5": _("not 32 lower-case hexadecimal digits"),
        "name_or_content": _("give either the name of a stored file, a content, or a url"),
        "no_cpu_kind": _("not one of %(names)s"),
        "container_command": _(
            "has one of the characters %(characters)s or options %(options)s, which would not reach the container"
        ),
        "container_command_limit": _("more than %(nbytes)s bytes, which is all that containers get"),
        "container_settings_remote": _("must be stored here, because it is checked"),
        "container_no_toml": _("not TOML: %(reason)s"),
        "container_setting_unknown": _("not allowed here: it could leave the container. Allowed: %(names)s"),
        "container_setting_value": _(
            "not allowed: workdir is an absolute path, use_gpu true or false, verbose 0 to %(most)s"
        ),
        "no_text": _("not a text of at most %(number)s characters"),
        "half_a_character": _("not valid text: it has half of a character"),
        "no_boolean": _("neither true nor false"),
    }
)

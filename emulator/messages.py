"""The emulator's sentences that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # Assumptions about a computer here (emulator/pages/host_scenario.py)
        "assumed_run_times": _(
            "The run times of its tasks are not known. The scenario assumes %(cpu_hours)s h on a CPU and a "
            "deadline of one week."
        ),
        "assumed_gpu_run_times": _(
            "The run times of its tasks are not known. The scenario assumes %(cpu_hours)s h on a CPU, "
            "%(gpu_hours)s h on a GPU and a deadline of one week."
        ),
        "assumed_other_run_times": _(
            "The run times of other tasks are not known. The scenario assumes %(cpu_hours)s h on a CPU, "
            "%(gpu_hours)s h on a GPU and a deadline of one week."
        ),
        "assumed_speed": _("The speed of its processor has not been measured. The scenario assumes %(gflops)s GFLOPS."),
        "tasks_as_listed": _(
            "New tasks take as long as those on the computer now, and have as much time: %(projects)s."
        ),
        "tasks_go_on": _(
            "The emulation goes on from the tasks that the client listed (%(tasks)s). Its list does not name "
            "their processors: they count as CPU tasks wherever their project has a program for CPUs."
        ),
        "assumed_always_on": _(
            "The client has not reported how much the computer is on. The scenario assumes that it always is."
        ),
        # Where a file is wrong (emulator/files/sections.py)
        "place_line_tag": _("%(file)s, line %(line)s, <%(tag)s>"),
        "place_line": _("%(file)s, line %(line)s"),
        # Why a decision cannot be replayed (emulator/engine/replay.py)
        "replay_without_simulation": _("This policy does not use the round-robin simulation."),
        "replay_no_decision": _("The policy did not make this decision."),
        "replay_other_run": _(
            "The emulator has changed since this run was made. Run the experiment again to see its decisions."
        ),
        # Omissions from a client's files, and assumptions (emulator/files, emulator/engine/policies/registry.py)
        "left_out_project": _("%(name)s is left out: it has no app that this computer can run"),
        "left_out_gpu": _("The %(kind)s is left out: the file does not say how fast it is"),
        "left_out_gpus": _("All GPUs are left out because cc_config.xml disables them"),
        "files_read": _("Files that were read: %(files)s"),
        "begins_at": _("The emulation begins at %(moment)s UTC, when the client wrote client_state.xml"),
        "follows_time_log": _(
            "The computer is on, active and connected as time_stats_log says. Its last whole days are "
            "repeated: %(days)s"
        ),
        "time_log_too_short": _("time_stats_log is not used: it covers less than a day"),
        "left_out_lines": _("%(file)s: lines that cannot be read are left out: %(number)s, the first is line %(line)s"),
        "files_not_opened": _("Other files of the ZIP, which were not opened: %(number)s"),
        "sizes_of_app": _("%(name)s: sizes of %(app)s are those of %(number)s tasks in its job log"),
        "sizes_of_project": _(
            "%(name)s: sizes of %(app)s are those of %(number)s tasks in the project's job log, which does "
            "not say of which app they are"
        ),
        "tasks_downloading": _("%(name)s: tasks whose files are not downloaded yet can run at once"),
        "tasks_uploading": _("%(name)s: tasks whose files are not uploaded yet can be reported"),
        "tasks_suspended": _("%(name)s: suspended tasks stay suspended, so the project is not asked for new ones"),
        "left_out_idle_app": _("%(name)s: %(app)s is left out because it hardly uses the CPU"),
        "left_out_app": _("%(name)s: %(app)s is left out because it has no version for this computer"),
        "left_out_tasks": _("%(name)s: tasks whose version this computer cannot run are left out"),
        "no_effect_folder": _("%(file)s has no effect: no project has the folder %(folder)s"),
        "no_effect_apps": _("%(file)s has no effect: no project has all its apps"),
        "no_effect_no_app": _("%(file)s has no effect: it names no app, so put it in its project's folder"),
        "assumed_in_use": _(
            "Tasks wait while the computer is in use. The scenario assumes %(hours)s h a day, "
            "%(length_hours)s h at a time on average."
        ),
        "assumed_gpu_in_use": _(
            "GPU tasks wait while the computer is in use. The scenario assumes %(hours)s h a day, "
            "%(length_hours)s h at a time on average."
        ),
        "assumed_on_battery": _(
            "Tasks wait while the computer runs on its battery. The scenario assumes %(hours)s h a day, "
            "%(length_hours)s h at a time on average."
        ),
        "assumed_exclusive": _(
            "Tasks wait while an exclusive application runs. The scenario assumes %(hours)s h a day, "
            "%(length_hours)s h at a time on average."
        ),
        "assumed_gpu_exclusive": _(
            "GPU tasks wait while an exclusive GPU application runs. The scenario assumes %(hours)s h a day, "
            "%(length_hours)s h at a time on average."
        ),
        "measured_less": _(
            "The client measured that tasks could run %(measured_hours)s h a day. Its preferences allow "
            "%(allowed_hours)s h a day. In the rest of these hours something else stopped tasks, and the "
            "scenario assumes that this goes on."
        ),
        "begins_on_sunday": _("The file does not say when it was written. The scenario begins on Sunday at 0:00."),
        "policy_without_gpus": _(
            "Debt with preemption does not use GPUs: it neither asks for GPU tasks nor runs them."
        ),
        "ignored_gpu_tag": _("%(tag)s is ignored: the GPU is kept"),
        "ignored_half_life": _("rec_half_life_days is ignored: the half-life is set with the policy"),
        # Why an element of a file is not used (emulator/files/unused.py)
        "unused_person": _("it says who the volunteer is"),
        "unused_statistic": _("it is a statistic that decides nothing"),
        "unused_transfers": _("transfers are not emulated: what is to be downloaded or uploaded counts as done"),
        "unused_programs": _("it is about programs and their files, which are not run"),
        "unused_exchange": _("it is about messages between the client and servers"),
        "unused_space": _("disk space and swapped memory are not emulated"),
        "unused_replaced": _("the preferences of the computer's place are used instead"),
        "unused_machine": _("it describes the computer, but does not change what it computes"),
        "unused_client": _("it is about how the client program works, shows or logs"),
        "unused_chosen": _("what the owner chose for a time is not continued"),
        "unused_not_modelled": _("the emulator does not model it"),
        "unused_other_venue": _("it is for computers at another place"),
        "unused_unknown": _("the emulator does not know it"),
        # Why a run has no result (emulator/runs)
        "run_memory_limit": _("It needs more than %(mib)s MiB of memory. Try fewer days or projects."),
        "run_time_limit": _(
            "It took more than %(secs)s s of processor time. Try fewer days, fewer projects or longer tasks."
        ),
        "run_site_fault": _("It failed because of a fault of this site. The site’s operators can see the reason."),
        "run_worker_lost": _("Its worker was lost every time it was tried."),
        "files_not_read": _(
            "This site failed to read them every time it tried. The site’s operators can see the reason. Try "
            "again later."
        ),
        # What is wrong with a client's files or with a scenario, after its place (ScenarioError)
        "value_missing": _("it is missing"),
        "app_name_missing": _("it is missing: the app must be named"),
        "host_missing": _("it is missing: the file does not describe the computer"),
        "projects_missing": _("it is missing: the client has no projects"),
        "project_url_missing": _("it is missing: a project needs one"),
        "gpu_type_missing": _("it is missing: a coprocessor needs a type"),
        "mean_missing": _("it is missing: a distribution needs one"),
        "weekday_missing": _("it is missing: hours of a day need one, from 0 (Sunday) to 6"),
        "day_twice": _("two entries are for the same day"),
        "state_file_missing": _("it is missing; all the other files are optional"),
        "host_speed_missing": _("<p_ncpus> and <p_fpops> are required"),
        "too_many_kinds": _("two entries for %(kind)s, or more than %(limit)s types of processor"),
        "not_a_fraction": _("it must be a number from 0 to 1, or -1 for unknown"),
        "before_first_project": _("it comes before the first <project>, so it belongs to no project"),
        "app_twice": _("the project already has an app of this name, or has more than %(limit)s"),
        "unknown_app_name": _("the project has no app of this name"),
        "unknown_workunit_name": _("the project has no workunit of this name"),
        "version_without_cpu": _("a version without a coprocessor must use some CPU"),
        "too_many_projects": _("more than %(limit)s projects"),
        "too_many_versions": _("more than %(limit)s versions of an app"),
        "too_many_tasks": _("more than %(limit)s tasks"),
        "no_time_log": _("this is the wrong kind of file: not a Unix time and an event"),
        "no_job_log": _("this is the wrong kind of file: not a line of a job log"),
        "zip_files_limit": _("it has more than %(limit)s files"),
        "no_zip": _("this is no ZIP file, or it is damaged"),
        "zip_read_limit": _("more than %(limit)s of its files would have to be read"),
        "zip_size_limit": _("the files to read are larger than %(limit_mib)s MiB together"),
        "zip_path_outside": _("its path leads out of the ZIP"),
        "zip_without_state": _("the ZIP does not have it: pack the client's whole data folder"),
        "zip_several_clients": _("the ZIP has the data folders of several clients: pack one"),
        "zip_link": _("it is a link, not a file"),
        "zip_encrypted": _("it is encrypted: pack the folder without a password"),
        "zip_ratio_limit": _("it is packed to less than 1/%(limit)s of its size"),
        "zip_damaged": _("it cannot be unpacked: the ZIP is damaged"),
        "trace_interval": _("the interval %(since_secs)s to %(until_secs)s is empty or does not follow the last"),
        "too_many_elements": _("more than %(limit)s elements"),
        "doctype_refused": _("document types and entities are not accepted"),
        "file_size_limit": _("the file is larger than %(limit_mib)s MiB"),
        "other_kind_of_file": _("this is the wrong kind of file: it does not begin with <%(tag)s>"),
        "element_twice": _("a second one begins before the first is closed"),
        "element_not_closed": _("it is never closed: the file is incomplete"),
        "text_too_long": _("longer than %(limit)s characters"),
        "not_an_integer": _("not an integer from %(low)s to %(high)s"),
        "not_a_decimal": _("not a decimal number from %(low)s to %(high)s"),
        "no_usable_project": _("no project has an app this computer can run"),
        "no_share": _("at least one project needs a share above 0"),
        "project_twice": _("a second project of this name and address"),
        "project_name_twice": _("two projects have the same name"),
        "tasks_too_short": _("its tasks would take less than a millisecond"),
        "not_in_range": _("%(value)s is not a number from %(low)s to %(high)s"),
        "wrong_number_of": _("there are %(number)s; the limit is %(low)s to %(high)s"),
        "name_length": _("a name must have 1 to %(limit)s characters"),
        "version_cannot_run": _("its version cannot run on this computer"),
        "no_such_processor": _("this computer has no %(kind)s"),
        "no_run_time": _("%(hours)s is not a run time"),
        "nothing_named": _("name at least one"),
        "not_within": _("%(value)s is not from %(low)s to %(high)s"),
        "version_uses_nothing": _("a version must use some CPU, or name a GPU and use some of it"),
        "too_many_of_them": _("more than %(limit)s of them"),
        "not_a_whole_number_in_range": _("%(value)s is not a whole number from %(low)s to %(high)s"),
        "follows_trace": _("this computer follows a trace; leave it out to vary the fraction"),
        "processor_twice": _("two entries have the same type; use one entry with more instances"),
        "not_json": _("the file is not JSON: %(error)s"),
        "version_missing": _("it is missing: this site reads version %(version)s"),
        "version_unknown": _("%(given)s is not known: this site reads version %(version)s"),
        "not_an_object": _("it is not an object"),
        "not_a_list": _("it is not a list"),
        "wrong_type": _("it has the wrong type"),
        "not_a_number": _("%(value)s is not a number"),
        "not_a_whole_number": _("%(value)s is not a whole number"),
        "not_a_boolean": _("%(value)s is not true or false"),
        "not_text": _("%(value)s is not text"),
        "not_unicode": _("it is not Unicode text"),
        "nul_character": _("the character NUL is not allowed"),
        "unknown_names": _("unknown: %(names)s"),
        "no_such_project": _("the scenario has no project %(name)s"),
        "no_such_app": _("the scenario has no app %(name)s of that project"),
        "downtime_too_long": _("it must be longer than the downtime"),
        "event_changes_nothing": _("it changes nothing: give at least one preference"),
        "hardware_changes_nothing": _("it changes nothing: give a number of processors or their speed"),
        "no_cpu_left": _("a computer has at least one CPU"),
        "processor_needs_speed": _("the computer has no %(kind)s yet: give the number and the speed of new ones"),
        "first_processor": _("the first must be %(kind)s"),
        "none_of": _("%(value)s is none of %(names)s"),
        "not_above_zero": _("%(value)s is not above 0 and at most %(most)s"),
        "no_state_file": _("there is none in %(folder)s"),
        "unknown_file": _("unknown file; allowed: %(names)s"),
        "not_a_list_of_tables": _("it is not a list of 1 to %(limit)s tables"),
        "label_twice": _("two have the same label"),
        "too_many_runs": _("that makes %(number)s runs; the limit is %(limit)s"),
        "not_a_table": _("it is not a table of %(names)s"),
        "not_a_list_of_seeds": _("it is not a list of 1 to %(limit)s whole numbers"),
        "seed_out_of_range": _("each must be a whole number from 0 to %(most)s"),
        "not_a_text": _("it is not a text of at most %(limit)s characters"),
        "used_for_other_scenario": _("it was used for another scenario"),
        "no_source": _("there is no such file or folder, and no example of this name (--list shows them)"),
        "no_values": _("%(value)s has no values, or more than %(limit)s"),
        "not_a_range": _("%(value)s is neither a number nor a range such as 0:5:0.5"),
        "too_many_values": _("more than %(limit)s values"),
        "computer_without_hardware": _("%(computer)s has not reported its hardware yet"),
        "computer_without_project": _("%(computer)s is not attached to any project yet"),
    }
)

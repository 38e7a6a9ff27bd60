"""Every address of the site, and what its owner, another volunteer, an operator and a stranger get there.

The answers are those of `World`: Alice owns what the addresses are about, Bob is another volunteer, the operator is
staff.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

LOGIN: Final = "login"
"""Sent to the sign-in page."""
ON: Final = "on"
"""Sent on to another page, as after a form."""

Answer = int | str
WHO: Final = ("owner", "other", "staff", "stranger")


@dataclass(frozen=True)
class Line:
    """An address (``route`` as in the URLconf), how it is asked, and the answer to each of the four."""

    route: str
    owner: Answer
    other: Answer
    staff: Answer
    stranger: Answer
    path: str = ""
    method: str = "GET"
    data: Mapping[str, str] = field(default_factory=dict)
    # Whether an operator may find Alice's name in it
    staff_sees: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path or self.route or '/'}"


def own(route: str, path: str = "", answer: Answer = 200, **more: Any) -> Line:
    """A page that everybody has of their own, and strangers have to sign in for."""
    return Line(route, answer, answer, answer, LOGIN, path, **more)


def act(route: str, path: str = "", answer: Answer = ON, **more: Any) -> Line:
    """A form about oneself."""
    return Line(route, answer, answer, answer, LOGIN, path, "POST", **more)


def mine(route: str, path: str, answer: Answer = 200, **more: Any) -> Line:
    """A page about a thing that has an owner: for everybody else there is no such thing."""
    return Line(route, answer, 404, 404, LOGIN, path, **more)


def act_on(route: str, path: str, answer: Answer = ON, **more: Any) -> Line:
    """A form about a thing that has an owner."""
    return mine(route, path, answer, method="POST", **more)


def public(route: str, path: str = "", answer: Answer = 200, **more: Any) -> Line:
    """The same for everybody."""
    return Line(route, answer, answer, answer, answer, path, **more)


def by_token(route: str, path: str = "") -> Line:
    """The REST API: by token, for one's own data."""
    return Line(route, 200, 200, 200, 401, path)


def guest(route: str, path: str = "") -> Line:
    """A page for who is not signed in; who is, goes home."""
    return Line(route, ON, ON, ON, 200, path)


BOINC_PAGE: Final = r"^(?:/+)?(?:project/+)?(?P<name>\w+)\.php$"
PORTAL: Final = [
    public("healthz"),
    public("readyz"),
    # The bearer of the token, or whoever asks from this machine, as tests do.
    public("metrics"),
    public("favicon.ico", answer=ON),
    public("robots.txt"),
    public("sitemap.xml"),
    public("site.webmanifest"),
    public(".well-known/security.txt", answer=404),
    public(".well-known/change-password", answer=ON),
    public("status/"),
    public("language/", answer=ON, method="POST", data={"language": "de"}),
    public("script-texts/<str:language>/<str:version>.js", "script-texts/de/old.js"),
    public("about/"),
    public("privacy/"),
    public("terms/"),
    Line("look-around/", ON, ON, ON, 404, method="POST"),
    public("look-around/leave/", answer=ON, method="POST"),
    public("server_status.php", answer=ON),
    public("su_unsubscribe.php", answer=ON),
    public("server_status.php", "server_status.php?xml=1"),
    # Each: tests/portal/public_pages/test_boinc_addresses.py
    public(BOINC_PAGE, "get_passwd.php", answer=ON),
    public(BOINC_PAGE, "forum_index.php", answer=410),
    Line(BOINC_PAGE, 404, 404, 404, LOGIN, "hosts_user.php?userid=1"),
    own("account/email/"),
    act("account/email/", data={"action_add": "", "email": "x@example.org", "password": "wrong"}, answer=200),
    own("account/profile/"),
    act("account/profile/", data={"name": "N"}),
    own("account/events/"),
    own("account/consents/"),
    own("account/keys/"),
    Line("account/keys/<int:pk>/revoke/", 405, 405, 405, 405, "account/keys/{key}/revoke/"),
    act_on("account/keys/<int:pk>/revoke/", "account/keys/{key}/revoke/"),
    act("account/keys/revoke/"),
    own("account/login-token/"),
    act("account/login-token/", answer=200),
    # Without LOGIN_BY_USER_NAME
    Line("account/user-name/", 404, 404, 404, LOGIN),
    own("account/tokens/"),
    act("account/tokens/", data={"name": "x", "scopes": "read:hosts"}, answer=200),
    act_on("account/tokens/<int:pk>/revoke/", "account/tokens/{token}/revoke/"),
    act_on("account/tokens/<int:pk>/replace/", "account/tokens/{token}/replace/", answer=200),
]
ALLAUTH: Final = [
    guest("account/login/"),
    Line("account/logout/", 200, 200, 200, ON),
    public("account/inactive/"),
    guest("account/signup/"),
    own("account/reauthenticate/"),
    public("account/confirm-email/"),
    own("account/password/change/"),
    own("account/password/set/", answer=ON),
    public("account/password/reset/"),
    own("account/login/code/confirm/", answer=ON),
    public("account/^confirm-email/(?P<key>[-:\\w]+)/$", "account/confirm-email/x/"),
    public("account/password/reset/key/done/"),
    public("account/^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$", "account/password/reset/key/1-x-y/"),
    public("account/password/reset/done/"),
    own("account/2fa/"),
    own("account/2fa/authenticate/", answer=ON),
    own("account/2fa/reauthenticate/", answer=ON),
    own("account/2fa/totp/activate/"),
    own("account/2fa/totp/deactivate/", answer=404),
    own("account/2fa/webauthn/"),
    own("account/2fa/webauthn/add/"),
    own("account/2fa/webauthn/reauthenticate/", answer=ON),
    own("account/2fa/webauthn/keys/<int:pk>/remove/", "account/2fa/webauthn/keys/1/remove/", answer=404),
    own("account/2fa/webauthn/keys/<int:pk>/edit/", "account/2fa/webauthn/keys/1/edit/", answer=404),
    Line("account/2fa/webauthn/login/", ON, ON, ON, LOGIN),
    own("account/2fa/recovery-codes/", answer=404),
    own("account/2fa/recovery-codes/generate/"),
    own("account/2fa/recovery-codes/download/", answer=404),
    own("account/sessions/"),
]
ACCOUNT_MANAGER: Final = [
    public("get_project_config.php"),
    public("lookup_account.php"),
    public("create_account.php"),
    *(public(f"{name}.php") for name in ("am_get_info", "su_rpc", "su_host_ids")),
    public("notices.rss"),
    public("notices.php"),
    # By its mark alone, which only the computer's client is given
    public("notices/<int:pk>-<slug:mark>.rss", "{feed}"),
    public("notices/<int:pk>-<slug:mark>.rss", "notices/{host}-0.rss", answer=404),
    public("news/"),
    public("rpc.php", method="POST"),
    public("api/v1/"),
    public("^api(?:/|$)", "api/v1/no-such-thing/", 404),
    public("api/v1/schema/"),
    by_token("api/v1/days/", "api/v1/days/?from=2026-01-01&to=2026-01-31"),
    by_token("api/v1/sums/", "api/v1/sums/?from=2026-01-01&to=2026-01-31"),
    by_token("api/v1/hosts/"),
    Line("api/v1/hosts/<int:pk>/", 200, 404, 404, 401, "api/v1/hosts/{host}/"),
    by_token("api/v1/tasks/"),
    Line("api/v1/tasks/<int:pk>/", 200, 404, 404, 401, "api/v1/tasks/{task}/"),
    by_token("api/v1/projects/"),
    by_token("api/v1/projects/<int:pk>/", "api/v1/projects/{project}/"),
    by_token("api/v1/notes/"),
    Line("", ON, ON, ON, 200),
    own("home/"),
    own("connect/"),
    Line("connect/status/", 200, 200, 200, 403),
    own("history/badges/"),
    own("history/certificates/"),
    own("history/certificates/new/"),
    act("history/certificates/new/", answer=200),
    mine("history/certificates/<int:pk>/", "history/certificates/{certificate}/"),
    act_on("history/certificates/<int:pk>/change/", "history/certificates/{certificate}/change/"),
    public("certificates/"),
    public("certificates/key.pem"),
    public("certificates/<str:text>/", "certificates/{code}/"),
    public("certificates/<str:text>/", "certificates/0000000000000000/", answer=404),
    public("certificates/<str:text>/statement.json", "certificates/{code}/statement.json"),
    own("account/signature-image/"),
    act("account/signature-image/", data={"shows_total": "on"}),
    # Shown by its owner to anyone who has the link
    public("signature/<str:token>.png", "signature/{signature}.png"),
    public("signature/<str:token>.png", "signature/none.png", answer=404),
    own("history/"),
    own("history/days/<str:text>/", "history/days/2026-01-01/"),
    own("history/years/<int:number>/", "history/years/2026/"),
    own("history/records/"),
    own("history/history.csv"),
    own("history/history.json"),
    own("history/files/"),
    act("history/files/make/", data={"kind": "csv"}),
    mine("history/files/<int:pk>.zip", "history/files/{export}.zip"),
    own("account/preferences/"),
    act("account/preferences/", data={"preset": "usual"}),
    act("account/preferences/shown/"),
    own("account/email-preferences/"),
    act("account/email-preferences/", data={"silent_days": "3", "status_days": "0"}),
    own("account/alerts/"),
    # By what only the browser knows
    public("account/alerts/browser/moved/", answer=400, method="POST"),
    # Of webhooks alone: extras/alerts/tests/test_page.py
    mine("account/alerts/<int:pk>/secret/", "account/alerts/{channel}/secret/", 404, method="POST"),
    *(
        act("account/alerts/<slug:path>/", f"account/alerts/{path}/", answer=422)
        for path in ("browser", "webhook", "ntfy")
    ),
    *(
        act_on(f"account/alerts/<int:pk>/{what}/", f"account/alerts/{{channel}}/{what}/")
        for what in ("choose", "test", "resume", "remove")
    ),
    public("sw.js"),
    # The address is signed and says whose mails end: anyone who has it can do that, and sees nothing.
    public("mails/end/<str:token>/", "{leave}"),
    public("mails/end/<str:token>/", "{leave}", method="POST"),
    own("account/data/"),
    act("account/data/copy/"),
    mine("account/data/<int:pk>.zip", "account/data/{copy}.zip"),
    own("account/delete/"),
    act("account/delete/", data={"password": "wrong"}, answer=422),
    own("computers/"),
    act("computers/change/", data={"action": "retire", "host": "{host}"}),
    own("computers/joining/"),
    act("computers/joining/", data={"group": "lab", "max_hosts": "2", "days": "7"}, answer=200),
    act("computers/joining/request/", data={"hosts_per_day": "50", "reason": "a room"}),
    act_on("computers/joining/<int:pk>/revoke/", "computers/joining/{join_token}/revoke/"),
    mine("computers/<int:pk>/", "computers/{host}/"),
    act_on("computers/<int:pk>/settings/", "computers/{host}/settings/", data={"name": "N"}),
    act_on("computers/<int:pk>/projects/", "computers/{host}/projects/"),
    act_on("computers/<int:pk>/retire/", "computers/{host}/retire/"),
    act_on("computers/<int:pk>/unretire/", "computers/{host}/unretire/"),
    act_on("computers/<int:pk>/split/", "computers/{host}/split/"),
    mine("computers/<int:pk>/merge/", "computers/{host}/merge/"),
    mine("computers/<int:pk>/merge/", "computers/{host}/merge/?with={second}"),
    act_on("computers/<int:pk>/merge/", "computers/{host}/merge/", data={"with": "{second}"}),
    public("projects/"),
    act("projects/"),
    own("projects/keywords/"),
    act("projects/keywords/"),
    own("projects/<int:pk>/", "projects/{project}/"),
    # The project of the matrix has one account that all share.
    own("projects/<int:pk>/account/", "projects/{project}/account/", 404),
    act("projects/<int:pk>/account/", "projects/{project}/account/", 404),
]
XML_OR_PAGE: Final = ("show_user", "show_host_detail", "apps")
PROJECT: Final = [
    public("project/"),
    public("project/scheduler", method="POST"),
    public("project/get_project_config.php"),
    public("project/file_upload_handler", method="POST"),
    public("project/download/<str:name>", "project/download/none", answer=404),
    public("^project/download/[0-9a-f]{1,8}/(?P<name>[^/]+)$", "project/download/236/none", answer=404),
    public("project/lookup_account.php"),
    public("project/create_account.php"),
    # By account keys, whoever is signed in; or of what is published. What they answer: tests/scheduler/web_rpcs.
    *(
        public(f"project/{name}.php")
        for name in (
            "am_get_info",
            "am_set_info",
            "am_set_host_info",
            "app_versions",
            "team_lookup",
            "login_token_lookup",
            "result_status",
        )
    ),
    *(public(f"project/{name}.php", answer=ON) for name in XML_OR_PAGE),
    *(
        public(f"project/{name}.php", f"project/{name}.php?format=xml")
        for name in ("show_user", "show_host_detail", "apps")
    ),
    public("project/server_status.php", "project/server_status.php?xml=1"),
]
# Alice and Bob may both submit jobs; operators see everybody's.
BATCHES: Final = [
    own("project/batches/", staff_sees=True),
    Line("project/batches/<int:pk>/", 200, 404, 200, LOGIN, "project/batches/{batch}/", staff_sees=True),
    Line("project/batches/<int:pk>/cancel/", ON, 404, ON, LOGIN, "project/batches/{batch}/cancel/", "POST"),
    own("project/batches/new/"),
    mine("project/batches/drafts/<int:pk>/", "project/batches/drafts/{draft}/"),
    act_on("project/batches/drafts/<int:pk>/submit/", "project/batches/drafts/{draft}/submit/"),
    act_on("project/batches/drafts/<int:pk>/discard/", "project/batches/drafts/{draft}/discard/"),
    Line("project/batches/<int:pk>/jobs/", 200, 404, 200, LOGIN, "project/batches/{batch}/jobs/", staff_sees=True),
    Line("project/batches/<int:pk>/jobs/cancel/", ON, 404, ON, LOGIN, "project/batches/{batch}/jobs/cancel/", "POST"),
    Line("project/batches/<int:pk>/retry/", ON, 404, ON, LOGIN, "project/batches/{batch}/retry/", "POST"),
    Line("project/batches/<int:pk>/retire/", ON, 404, ON, LOGIN, "project/batches/{batch}/retire/", "POST"),
    Line("project/batches/<int:pk>/outputs.zip", 200, 404, 200, LOGIN, "project/batches/{batch}/outputs.zip"),
    own("project/batches/containers/"),
    act("project/batches/containers/", data={"hours": "x"}, answer=422),
    own("project/batches/images/"),
    # One that is there: extras/containers/tests.
    mine("project/batches/images/<int:pk>/", "project/batches/images/1/", 404),
    act("project/batches/images/<int:pk>/", "project/batches/images/1/", answer=404),
    act("project/batches/images/<int:pk>/remove/", "project/batches/images/1/remove/", answer=404),
    own("project/batches/keys/"),
    act("project/batches/keys/", data={"name": "x"}, answer=422),
    # One that is there: extras/remote_jobs/tests.
    act("project/batches/keys/<int:pk>/revoke/", "project/batches/keys/1/revoke/", answer=404),
    # They say what is wrong in XML, or in a line of text.
    public(r"^project/+submit_rpc_handler\.php$", "project/submit_rpc_handler.php", method="POST"),
    public(r"^project/+job_file\.php$", "project/job_file.php", method="POST"),
    public(r"^project/+get_output\.php$", "project/get_output.php", answer=404),
    public(r"^project/+get_output2\.php$", "project/get_output2.php", answer=403),
    own("project/testing/"),
    act("project/testing/", data={"agrees": "on"}),
    # No outputs are there yet.
    mine("project/batches/<int:pk>/outputs/<int:output_id>/", "project/batches/{batch}/outputs/1/", 404),
    # By a token alone, of an operator of the project: extras/scripts/tests.
    Line("api/v1/scripts/", 403, 403, 200, 401),
    Line("api/v1/scripts/<slug:name>/", 403, 403, 404, 401, "api/v1/scripts/energy/"),
    Line("api/v1/scripts/<slug:name>/use/", 403, 403, 415, 401, "api/v1/scripts/energy/use/", "POST"),
    # The same goes for these (scheduler/releases/rest.py, scheduler/lanes/rest.py, scheduler/blocks/rest.py).
    Line("api/v1/blocks/", 403, 403, 200, 401),
    Line("api/v1/blocks/<int:pk>/", 403, 403, 404, 401, "api/v1/blocks/1/", "DELETE"),
    Line("api/v1/reserved-jobs/", 403, 403, 200, 401),
    Line("api/v1/app-versions/", 403, 403, 200, 401),
    Line("api/v1/app-versions/<int:pk>/steps/", 403, 403, 415, 401, "api/v1/app-versions/1/steps/", "POST"),
    Line("api/v1/app-version-drafts/", 403, 403, 200, 401),
    Line("api/v1/app-version-drafts/<int:pk>/", 403, 403, 404, 401, "api/v1/app-version-drafts/1/"),
    Line(
        "api/v1/app-version-drafts/<int:pk>/release/",
        *(403, 403, 415, 401),
        "api/v1/app-version-drafts/1/release/",
        "POST",
    ),
    Line(
        "api/v1/app-version-drafts/<int:pk>/files/<str:name>/",
        *(403, 403, 404, 401),
        "api/v1/app-version-drafts/1/files/x/",
        "DELETE",
    ),
    own("project/preferences/"),
    act("project/preferences/", data={"max_jobs": "x"}, answer=422),
    by_token("api/v1/project-preferences/"),
    by_token("api/v1/files/"),
    Line("api/v1/files/<str:name>/", 404, 404, 404, 401, "api/v1/files/in.csv/"),
    by_token("api/v1/batches/"),
    Line("api/v1/batches/<int:pk>/messages/", 200, 404, 200, 401, "api/v1/batches/{batch}/messages/"),
    Line("api/v1/batches/<int:pk>/", 200, 404, 200, 401, "api/v1/batches/{batch}/"),
    Line("api/v1/batches/<int:pk>/forecast/", 200, 404, 200, 401, "api/v1/batches/{batch}/forecast/"),
    Line("api/v1/batches/<int:pk>/cancel/", 200, 404, 200, 401, "api/v1/batches/{batch}/cancel/", "POST"),
    # It has no jobs yet.
    Line("api/v1/batches/<int:pk>/retire/", 409, 404, 409, 401, "api/v1/batches/{batch}/retire/", "POST"),
    Line("api/v1/batches/<int:pk>/outputs/", 200, 404, 200, 401, "api/v1/batches/{batch}/outputs/"),
    Line("api/v1/batches/<int:pk>/outputs/<int:output>/", 404, 404, 404, 401, "api/v1/batches/{batch}/outputs/1/"),
]
CREDIT: Final = [
    own("tasks/archived/"),
    # One that is there: tests/scheduler/lifecycle/test_finished_workunits.py.
    own("tasks/archived/<int:pk>/", "tasks/archived/1/", answer=404),
    own("tasks/"),
    # Operators look after the project's tasks, whoever's computer has them.
    Line("tasks/<int:pk>/", 200, 404, 200, LOGIN, "tasks/{task}/"),
    Line("workunits/<int:pk>/", 200, 404, 200, LOGIN, "workunits/{workunit}/"),
    public("apps/"),
    own("apps/<str:name>/", "apps/alpine/"),
    Line("project/result.php", ON, 404, ON, LOGIN, "project/result.php?result_name={task_name}"),
    public("project/stats/"),
    # Not there until the first export: tests/credit/export.
    public("project/stats/<str:name>", "project/stats/user.gz", answer=404),
    # There is none where the site is no central server: extras/central_factors/tests.
    public("project/version_factors.xml", answer=404),
    own("project/statistics/"),
    act("project/statistics/", data={"exports_statistics": "on"}),
    public("project/top/"),
    public("project/top/teams/"),
    own("project/top/choice/"),
    act("project/top/choice/", data={"shown_name": "A"}),
    public("project/teams/"),
    own("project/teams/new/"),
    act("project/teams/new/", answer=200),
    public("project/teams/<int:pk>/", "project/teams/1/", answer=404),
    act("project/teams/<int:pk>/change/", "project/teams/1/change/", data={"leave": ""}, answer=404),
    # Not there until the operator opens it: tests/credit/experiments.
    public("laboratory/", answer=404),
    public("laboratory/new/", answer=404),
    public("laboratory/<int:pk>/", "laboratory/1/", answer=404),
    public("laboratory/<int:pk>/result.json", "laboratory/1/result.json", answer=404),
    public("laboratory/<int:pk>/share/", "laboratory/1/share/", answer=404, method="POST"),
    public("laboratory/<int:pk>/delete/", "laboratory/1/delete/", answer=404, method="POST"),
    public("laboratory/shared/<str:key>/", "laboratory/shared/none/", answer=404),
    public("laboratory/shared/<str:key>/result.json", "laboratory/shared/none/result.json", answer=404),
]
RUN: Final = "emulator/<str:key>/runs/<int:number>/"
EMULATOR: Final = [
    public("emulator/"),
    act("emulator/new/form/", answer=400),
    act("emulator/new/files/", answer=400),
    act("emulator/new/example/<slug:key>/", "emulator/new/example/none/", answer=404),
    act_on("emulator/new/computer/<int:pk>/", "emulator/new/computer/{host}/"),
    act("emulator/new/json/"),
    act("emulator/new/blank/"),
    public("emulator/examples/<slug:key>/", "emulator/examples/boinc-5589/"),
    public("emulator/examples/<slug:key>/", "emulator/examples/none/", answer=404),
    public("emulator/scenario.schema.json"),
    mine("emulator/<int:pk>/", "emulator/{experiment}/"),
    by_token("api/v1/experiments/"),
    Line("api/v1/experiments/<int:pk>/", 200, 404, 404, 401, "api/v1/experiments/{experiment}/"),
    # One that is done: tests/emulator/rest/test_experiments_api.py.
    Line(
        *("api/v1/experiments/<int:pk>/runs/<int:number>/", 404, 404, 404, 401),
        "api/v1/experiments/{experiment}/runs/1/",
    ),
    mine("emulator/<int:pk>/edit/", "emulator/{experiment}/edit/", answer=ON),
    mine("emulator/<int:pk>/scenario.json", "emulator/{experiment}/scenario.json"),
    # The experiment of the matrix has begun: its estimate is empty.
    act_on("emulator/<int:pk>/estimate/", "emulator/{experiment}/estimate/", answer=200),
    act_on("emulator/<int:pk>/change/", "emulator/{experiment}/change/"),
    act_on("emulator/<int:pk>/cancel/", "emulator/{experiment}/cancel/"),
    act_on("emulator/<int:pk>/share/", "emulator/{experiment}/share/"),
    act_on("emulator/<int:pk>/delete/", "emulator/{experiment}/delete/"),
    # Shared by its owner with anyone who has the address
    public("emulator/shared/<str:key>/", "emulator/shared/{shared}/"),
    public("emulator/shared/<str:key>/", "emulator/shared/none/", answer=404),
    Line("emulator/<str:key>/timelines/", 200, 404, 404, 404, "emulator/{experiment}/timelines/"),
    public("emulator/<str:key>/timelines/", "emulator/{shared}/timelines/"),
    act("emulator/shared/<str:key>/fork/", "emulator/shared/{shared}/fork/"),
    act("emulator/shared/<str:key>/fork/", "emulator/shared/none/fork/", answer=404),
    *(
        line
        for what, there in {"": 200, "window/": 404, "job/": 404, "table/<slug:what>/": 404, "result.json": 404}.items()
        for line in (
            # A failed run has no timeline, and nobody is told whether a run is there that is not theirs.
            Line(
                f"{RUN}{what}",
                there,
                404,
                404,
                404,
                f"emulator/{{experiment}}/runs/1/{what.replace('<slug:what>', 'blocks')}",
            ),
            public(f"{RUN}{what}", f"emulator/{{shared}}/runs/1/{what.replace('<slug:what>', 'blocks')}", answer=there),
        )
    ),
    # No run of this world has decisions: tests/emulator/pages/test_decision_page.py.
    public(f"{RUN}decisions/<int:decision>/", "emulator/{shared}/runs/1/decisions/0/", answer=404),
    public(f"{RUN}<slug:what>.csv", "emulator/{experiment}/runs/1/jobs.csv", answer=404),
]
MATRIX: Final = [*PORTAL, *ALLAUTH, *ACCOUNT_MANAGER, *PROJECT, *BATCHES, *CREDIT, *EMULATOR]

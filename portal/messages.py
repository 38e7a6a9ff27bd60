"""The site's own sentences that are stored by code (`portal.languages.messages`). Pure."""

from __future__ import annotations

from typing import Final

from portal.languages.marking import gettext_noop as _
from portal.languages.messages import declare

MESSAGES: Final = declare(
    {
        # Why something could not be fetched (portal/fetch), after the host and a colon
        "fetch_address_too_long": _("an address can have at most %(limit)s characters"),
        "fetch_no_address": _("this is not a web address"),
        "fetch_scheme": _("an address must begin with http:// or https:// and a host name"),
        "fetch_login_in_address": _("an address must not contain a user name or password"),
        "fetch_port_zero": _("0 is not a valid port"),
        "fetch_unknown_host": _("the host name has no address"),
        "fetch_no_connection": _("no connection could be made"),
        "fetch_connect_limit": _("no connection within the limit of %(secs)s s"),
        "fetch_time_limit": _("took longer than the limit of %(secs)s s"),
        "fetch_read_limit": _("sent nothing for longer than the limit of %(secs)s s"),
        "fetch_no_encryption": _("no encrypted connection could be made"),
        "fetch_certificate": _("its certificate is not valid (%(why)s)"),
        "fetch_broken": _("the connection broke, or the answer is not HTTP"),
        "fetch_redirects": _("redirects more than %(limit)s times"),
        "fetch_redirected_post": _("redirects a POST request"),
        "fetch_redirected_nowhere": _("redirects to something that is not a web address"),
        "fetch_redirected_to_http": _("redirects from https to http"),
        "fetch_body_limit": _("sent more than the limit of %(limit_nbytes)s bytes"),
        "fetch_wire_limit": _("transferred more than the limit of %(limit_nbytes)s bytes"),
        "fetch_other_part": _("sent a different part of the file than requested"),
        "fetch_compression": _("its answer is compressed with a method that was not requested"),
        "fetch_damaged": _("its compressed answer is damaged"),
        "fetch_cut_off": _("its answer was cut off"),
        "fetch_not_stored": _("its answer could not be stored here: %(why)s"),
        "fetch_not_public": _("has the address %(address)s, which is not public and not in FETCH_ALLOWED_NETWORKS"),
        "fetch_other_scheme": _("an address begins with one of %(schemes)s"),
        "fetch_status": _("answered with status %(status)s"),
        # What a client reports that cannot be right (portal/wire/hardware.py, scheduler/wire/reported.py)
        "reported_no_integer": _("%(field)s is not an integer from %(low)s to %(high)s"),
        "reported_no_number": _("%(field)s is not a decimal number from %(low)s to %(high)s"),
        "reported_in_part": _("host_info was read in part, %(reason)s"),
        "reported_coprocs_limit": _("coprocs has more than %(limit)s entries"),
        # Why a message cannot be read, after the field and a colon (portal/wire/scanner.py)
        "message_body_limit": _("larger than %(limit)s bytes"),
        "message_depth_limit": _("nested deeper than %(limit)s levels"),
        "message_unclosed_limit": _("more than %(limit)s elements are never closed"),
        "more_than": _("more than %(limit)s"),
        "field_bytes_limit": _("longer than %(limit)s bytes"),
        "field_chars_limit": _("longer than %(limit)s characters"),
        "field_no_integer": _("not an integer from %(low)s to %(high)s"),
        "field_no_number": _("not a decimal number from %(low)s to %(high)s"),
        # Why a key or a signature cannot be used (portal/wire/signing.py, portal/wire/purposes.py)
        "name_public_key": _("public key"),
        "name_private_key": _("private key"),
        "name_signature": _("signature"),
        "key_no_rsa": _("%(name)s: its numbers are not an RSA key"),
        "key_numbers": _("%(name)s: its numbers do not match"),
        "signed_no_md5": _("MD5: %(md5)s is not 32 lower-case hexadecimal digits"),
        "key_size": _("%(name)s: it has %(bits)s bits, but BOINC clients know keys of %(known)s bits only"),
        "key_chars_limit": _("%(name)s: the text has %(number)s characters; the limit is %(limit)s"),
        "key_empty": _("%(name)s: the text is empty"),
        "key_after_dot": _("%(name)s: there is more text after the dot that ends it"),
        "key_stray_character": _("%(name)s: %(character)s is not a hexadecimal digit (0-9, a-f)"),
        "key_odd_digits": _("%(name)s: the number of hexadecimal digits is odd (%(number)s): one is missing"),
        "key_wrong_length": _("%(name)s: it has %(number)s hexadecimal digits, but must have exactly %(needed)s"),
        "key_first_line": _("%(name)s: the first line must be the number of bits, %(bits)s"),
        "key_is_other": _("%(name)s: this is a %(other)s"),
        "pem_encrypted": _("private key: the PEM text is encrypted; paste it without a pass phrase"),
        "pem_damaged": _("private key: the PEM text is damaged or is not a private key"),
        "pem_no_rsa": _("private key: the PEM text contains a key that is not RSA"),
        "key_not_clean": _("public key: it is not written as clients read it, or has white space at an end"),
        "md5_not_signed": _("the present key has not signed the MD5 %(md5)s"),
        "md5_of_key": _("this is the MD5 of a key, not of a program"),
        "url_unsignable": _(
            "URL: it must begin with http:// or https://, end with a slash, have no blanks or backslashes, and have "
            "at most %(limit)s bytes"
        ),
        # Why a file cannot be signed as a program (portal/wire/purposes.py)
        "program_like_key": _(
            "clients would take it for a new code-signing key, because its first line begins with a number and the "
            "next one with hexadecimal digits. Put another line before them, such as a comment, or compress the file."
        ),
        "program_like_other_text": _(
            "it reads as something else that has a meaning for clients or for this site: %(meaning)s."
        ),
        "text_url": _("the URL of a project"),
        "text_upload_certificate": _("an upload certificate"),
        "text_account_key": _("an account key"),
        "text_manifest": _("the manifest of a version"),
        "text_key_list": _("the list of a key change"),
        # The details of security events (portal/people/security_events.py)
        "event_all_keys": _("all keys"),
        "event_all_tokens": _("all tokens"),
        "event_key": "%(hint)s…, %(origin)s",
        "event_rights_allowed": _("allowed after the password was reset"),
        "event_rights_held": _("held, as the password was reset without a second factor"),
        "event_rights_confirmed": _("confirmed by a second operator"),
        "event_changed_fields": "%(fields)s",
        "event_factor_again": _("%(factor)s, created again"),
        "factor_totp": _("Authenticator app"),
        "factor_recovery_codes": _("Recovery codes"),
        "factor_webauthn": _("Passkey or security key"),
        "key_origin_attach": _("computer attached"),
        "key_origin_lookup": _("account looked up by a BOINC Manager"),
        "key_origin_join": _("computer attached with a join token"),
        "account_email": _("e-mail address"),
        "account_password": _("password"),
        "account_name": _("display name"),
        "account_active": _("is active"),
        "account_new_hosts": _("new computers per day"),
        "account_staff": _("operator"),
        "account_superuser": _("superuser status"),
        "account_groups": _("groups"),
        "account_permissions": _("user permissions"),
        # The log of support (portal/operators)
        "support_looked": _("Looked at the account: %(reason)s"),
        "support_searched": _("Searched for %(what)s. Accounts found: %(count)s."),
        "searched_something": _("a name, or the beginning of an address or a key"),
        "searched_email": _("an e-mail address"),
        "searched_number": _("a number"),
        "searched_token": _("an API token"),
        "searched_id": _("a host id or CPID"),
        "support_factor_removed": _("Remove the second factor"),
        "support_blocked": _("Block the account"),
        "support_unblocked": _("Unblock the account"),
        "support_data_copied": _("Request a copy of the data"),
        "support_erased": _("Delete the account"),
    }
)

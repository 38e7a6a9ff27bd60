"""The BOINC error numbers that this site sends or reads (BOINC protocol, section 12)."""

from typing import Final

ERR_GENERIC: Final = -1
ERR_XML_PARSE: Final = -112
ERR_ACCOUNT_NOT_FOUND: Final = -136
ERR_NOT_UNIQUE: Final = -137
ERR_BAD_AUTHENTICATOR: Final = -155
ERR_PROJECT_DOWN: Final = -183
ERR_BAD_USER_NAME: Final = -188
ERR_BAD_EMAIL: Final = -205
ERR_BAD_PASSWORD: Final = -206
ERR_ACCOUNT_CREATION_DISABLED: Final = -208
ERR_CONSENT_REQUIRED: Final = -242

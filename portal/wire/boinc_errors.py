"""BOINC's error numbers as far as this site sends or reads them (BOINC protocol, section 12)."""

from typing import Final

ERR_GENERIC: Final = -1
ERR_XML_PARSE: Final = -112
ERR_MD5: Final = -119
ERR_RSA: Final = -120
ERR_NO_SIGNATURE: Final = -123
ERR_UPLOAD_TRANSIENT: Final = -127
ERR_UPLOAD_PERMANENT: Final = -128
ERR_FILE_TOO_BIG: Final = -131
ERR_ACCOUNT_NOT_FOUND: Final = -136
ERR_NOT_UNIQUE: Final = -137
ERR_DATABASE: Final = -138
ERR_BAD_AUTHENTICATOR: Final = -155
ERR_NOT_FOUND: Final = -161
ERR_PROJECT_DOWN: Final = -183
ERR_BAD_USER_NAME: Final = -188
ERR_BAD_URL: Final = -189
ERR_BAD_EMAIL: Final = -205
ERR_BAD_PASSWORD: Final = -206
ERR_EMAIL_NOT_UNIQUE: Final = -207
ERR_ACCOUNT_CREATION_DISABLED: Final = -208
ERR_CONSENT_REQUIRED: Final = -242

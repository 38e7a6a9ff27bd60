"""The REST API, /api/v1/: what all of its views share, its errors, its description. docs/reference/api.md has examples.

The addresses themselves belong to the apps: a module ``rest`` of the use case, or a package of that name.
"""

from typing import Final

VERSION: Final = "1.0"
"""The first number is that of the addresses, and changes when programs would break; the second counts additions."""

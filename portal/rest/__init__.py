"""The REST API, /api/v1/: what its views share, its errors, its description. docs/reference/api.md has examples.

The endpoints belong to the apps, in a module or package ``rest`` of the use case.
"""

from typing import Final

VERSION: Final = "1.0"
"""The first number is that of the addresses, and changes if programs would break; the second counts additions."""

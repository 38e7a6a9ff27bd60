"""The settings that affect credit."""

from __future__ import annotations

from typing import Final

from credit.previews.settings import APP_FIELDS, VERSION_FIELDS

# These decide which jobs are done, or their peak FLOPS: no replay of past jobs can show their effect.
OF_APPS: Final = frozenset({*APP_FIELDS, "min_replication_chance", "adaptive_replication"})
OF_VERSIONS: Final = frozenset({*VERSION_FIELDS, "avg_ncpus", "gpu_usage"})
PREVIEWED: Final = frozenset({*APP_FIELDS, *VERSION_FIELDS})

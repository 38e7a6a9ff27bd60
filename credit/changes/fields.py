"""Which settings change credit."""

from __future__ import annotations

from typing import Final

from credit.previews.settings import APP_FIELDS, VERSION_FIELDS

# Those besides decide which jobs are done, or at which peak FLOPS: no replay of past jobs can show what they do.
OF_APPS: Final = frozenset({*APP_FIELDS, "min_replication_chance", "adaptive_replication"})
OF_VERSIONS: Final = frozenset({*VERSION_FIELDS, "avg_ncpus", "gpu_usage"})
PREVIEWED: Final = frozenset({*APP_FIELDS, *VERSION_FIELDS})

"""Old months of the daily history as Parquet files in a storage: writing, reading, checking, and bringing them back."""

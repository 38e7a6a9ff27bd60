"""Tasks that maintain the ledger's tables: monthly partitions, roll-up, the check of invariants; and notes in words."""

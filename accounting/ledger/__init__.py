"""Tasks that keep the ledger's tables: monthly partitions, roll-up, the check of what must hold; and notes in words."""

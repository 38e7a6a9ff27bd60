"""What the emulator's pages say: sentences for decisions, rows, findings and figures, in the visitor's language."""

"""The words of the emulator's pages: sentences for decisions, rows, findings and figures, in the visitor's language."""

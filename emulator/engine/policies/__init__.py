"""The scheduling policies; each module cites its document section by section."""

"""System checks: settings that would fail later are refused at the start, each with a hint."""

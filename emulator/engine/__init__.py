"""The emulation itself, as pure code: scenario, policy and seed in, results out. No Django, no clock."""

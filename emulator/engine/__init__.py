"""The emulation itself, as pure code: scenario, policy and seed in, what happened out. No Django, no clock."""

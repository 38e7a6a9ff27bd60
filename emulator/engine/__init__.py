"""The emulator itself: scenario, policy and seed in, what happened out; no Django, no clock."""

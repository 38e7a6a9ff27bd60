"""The minimal SQL for a piece of work, with which its rate is compared."""

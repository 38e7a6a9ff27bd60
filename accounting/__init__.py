"""The account manager: projects, the ledger of what computers report, and the volunteers' pages."""

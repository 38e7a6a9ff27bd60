"""Release versions of apps from the browser: upload, look, sign, test, release, withdraw, roll back."""

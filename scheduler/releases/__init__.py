"""Releases of app versions from the browser: upload, review, sign, test, release, withdraw, roll back."""

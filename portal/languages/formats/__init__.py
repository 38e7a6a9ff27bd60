"""How each language writes dates and numbers (Django's FORMAT_MODULE_PATH): one style on all pages."""

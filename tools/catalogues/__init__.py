"""Catalogues of texts: what modules, templates and scripts have, written to them, and what is wrong with them."""

"""The languages of the site: catalogues of its texts, and which language and time zone a visitor gets."""

"""Which jobs a computer gets, and on which versions of their apps: the rules of a reply to a request for work. Pure."""

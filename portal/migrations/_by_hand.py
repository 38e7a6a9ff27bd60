"""What Django's models cannot say of this app's tables; the last operations of its initial migration."""

from __future__ import annotations

from typing import Final

from django.db import migrations

# Each report rewrites these rows: room on the page keeps the updates off the indexes.
_ROOM: Final = "ALTER TABLE portal_host SET (fillfactor = 60)"
# Nobody changes what was said, not even by hand: it would prove nothing then.
_CONSENTS_STAY: Final = """
CREATE FUNCTION portal_consentevent_stays() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'consents given and withdrawn are never changed'; END$$;
CREATE TRIGGER portal_consentevent_stays BEFORE UPDATE ON portal_consentevent
   FOR EACH ROW EXECUTE FUNCTION portal_consentevent_stays()
"""
# Nobody changes or removes an entry. The table's owner can empty it, which exported copies show.
_SIGNED_LOG_STAYS: Final = """
CREATE FUNCTION portal_signedentry_stays() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'entries of the signed log are never changed or removed'; END$$;
CREATE TRIGGER portal_signedentry_stays BEFORE UPDATE OR DELETE ON portal_signedentry
   FOR EACH ROW EXECUTE FUNCTION portal_signedentry_stays()
"""
# Rows of a computer are found by the computer alone: what it did would become another person's.
_OWNER_STAYS: Final = """
CREATE FUNCTION portal_host_owner_stays() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'the owner of a computer never changes'; END$$;
CREATE TRIGGER portal_host_owner_stays BEFORE UPDATE OF owner_id ON portal_host
   FOR EACH ROW WHEN (NEW.owner_id <> OLD.owner_id) EXECUTE FUNCTION portal_host_owner_stays()
"""

OPERATIONS: Final = [migrations.RunSQL([_ROOM, _CONSENTS_STAY, _SIGNED_LOG_STAYS, _OWNER_STAYS])]

"""The account-manager RPC's messages: bytes to dataclasses and back. Pure."""

"""The rules by which projects are chosen for a computer. Pure."""

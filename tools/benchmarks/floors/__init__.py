"""The bare SQL that a piece of work cannot do without, which its rate is compared with."""

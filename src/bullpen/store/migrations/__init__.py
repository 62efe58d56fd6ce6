"""The migrations between the revisions of the database, in both directions; run by store/schema.py."""

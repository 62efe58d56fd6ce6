"""The steps from each revision of the database to the next, up and down; run by store/schema.py."""

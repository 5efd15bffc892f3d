"""A person goes through labels one row at a time: what to ask next, the journal, the page."""

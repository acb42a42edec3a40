"""The chapters of the journal's contract; :mod:`agents_progress.testing.journal_contract` is the whole of it."""

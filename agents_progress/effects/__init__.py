"""Effects that happen once. :mod:`.once` is the decorator, :mod:`.ledger` where it is written down what happened."""

"""Effects that happen once. :mod:`.once` is the decorator, :mod:`.ledger` where it is written down what happened;
:mod:`.reactions` is what an outside change leads to.
"""

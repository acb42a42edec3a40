"""Bars that take minutes or real servers: each a command that prints its figures and ends by itself, with exit code 1
when a bar fails. `python -m tests.bars` lists and runs them; the ordinary suite has a short version of each.
"""

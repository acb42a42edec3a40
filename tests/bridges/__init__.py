"""The bridges with real front ends: every situation, played by the clients that people have, in Node and in Chromium.

`python -m tests.bars --only bridges` prints what our view says of each beside what each client shows.
"""

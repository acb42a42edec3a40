"""The situations in which runs of the OpenAI Agents SDK end, as ordinary user code, and what the bare SDK makes of
them.
"""

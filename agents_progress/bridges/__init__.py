"""Bridges: pure projections of a run's log onto the event streams of other protocols.

A bridge adds no fact, and says success only where :class:`~agents_progress.view.RunView` says `done`. The log stays the
one truth: a reader that comes back gets its stream from it again.

:mod:`~agents_progress.bridges.base` says what a bridge is, :mod:`~agents_progress.bridges.table` what each protocol
shows of every event. ``runs_app(..., bridges=[...])`` of :mod:`agents_progress.server` mounts them.
"""

"""``replay``: recorded envelopes, fed to a view step by step."""

from __future__ import annotations

import argparse

from agents_progress.cli.printing import FINE, say
from agents_progress.messages import Language
from agents_progress.plaintext import clean, cut
from agents_progress.recordings import Recording, built_in, load
from agents_progress.view import RunView


def replay(chosen: argparse.Namespace) -> int:
    if chosen.list or chosen.source is None:
        for name in built_in():
            say(clean(name))
        return FINE
    recordings = load(chosen.source)
    for recording in recordings:
        if len(recordings) > 1:
            say(f"== {cut(clean(recording.name), 120)}")
        _replay_one(recording, chosen.language)
    return FINE


def _replay_one(recording: Recording, language: Language) -> None:
    """One line per envelope, with what a reader may show after it; then the same after the input has ended."""
    view = RunView(recording.run_id, language)

    def step(number: object, what: object) -> None:
        say(f"{cut(clean(number), 8):>8}  {cut(clean(what), 64):<24}  {view.status:<10}  {view.message}")

    for event in recording.events:
        view.feed(event)
        fields = event if isinstance(event, dict) else {}
        seq = fields.get("seq")
        step(seq if isinstance(seq, int) and abs(seq) < 10**15 else "-", fields.get("type", "-"))
    view.close_transport()
    step("end", "of input")
    counted = {"duplicates": view.duplicates, "foreign": view.foreign}
    remarks = [*view.issues, *(f"{name} {count}" for name, count in counted.items() if count)]
    if remarks:
        say(f"{'':>8}  {', '.join(remarks)}")

"""What tests of an agent need: a scripted API over the real client, and a guard against the network.

```python
api = ScriptedAPI([
    turn(text("Let me look."), call("search", {"q": "x"}, call_id="c1")),
    turn(text("Done.")),
])
agent = Agent(name="A", model=api.model(), tools=[search])
```

Importing it loads neither the SDK, nor the openai client, nor an HTTP library, nor pytest.
"""

from .network import NetworkReached, no_network
from .scripted import ScriptedAPI, ScriptNotPlayed
from .turns import (
    Turn,
    Usage,
    call,
    completed,
    connection_error,
    cut,
    error,
    event,
    failed,
    hang_up,
    http_error,
    incomplete,
    message,
    pause,
    raw_item,
    raw_turn,
    reached,
    reasoning,
    refusal,
    text,
    turn,
    wait,
)

__all__ = [
    "NetworkReached",
    "ScriptNotPlayed",
    "ScriptedAPI",
    "Turn",
    "Usage",
    "call",
    "completed",
    "connection_error",
    "cut",
    "error",
    "event",
    "failed",
    "hang_up",
    "http_error",
    "incomplete",
    "message",
    "no_network",
    "pause",
    "raw_item",
    "raw_turn",
    "reached",
    "reasoning",
    "refusal",
    "text",
    "turn",
    "wait",
]

"""A script or a worker without an event loop of its own: `run_sync`. Without `verify=` the run stays `checking`."""

from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled

from agents_progress import progress
from agents_progress.testing import ScriptedAPI, text, turn
from agents_progress.verify import equals

api = ScriptedAPI([turn(text("5 EUR")), turn(text("5 EUR"))])
agent = Agent("Clerk", model=api.model())


@progress
def total(question: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, question)


def main() -> None:
    unchecked = total.run_sync("2 EUR plus 3 EUR?")
    print(f"without a check: {unchecked.kind}, accepted: {unchecked.accepted}")
    checked = total.using(verify=equals("5 EUR")).run_sync("2 EUR plus 3 EUR?")
    print(f"with a check:    {checked.kind}, accepted: {checked.accepted}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    main()

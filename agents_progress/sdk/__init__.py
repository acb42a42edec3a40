"""The OpenAI Agents SDK, seen from here: the only package that imports it."""

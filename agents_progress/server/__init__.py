"""Runs over HTTP: an ASGI app to mount, and a service for one function."""

"""What people look at, in a real browser: headless Chromium on a real server, with scripted runs and forged logs."""

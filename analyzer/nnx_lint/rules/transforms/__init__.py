"""Checks of what transforms take and give."""

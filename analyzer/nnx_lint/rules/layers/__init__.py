"""Checks of rules, by topic."""

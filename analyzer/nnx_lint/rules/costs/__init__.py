"""Checks of what makes programs slow."""

"""Checks of what becomes of graphs: merge, update, State, sharing."""

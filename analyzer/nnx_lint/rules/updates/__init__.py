"""Checks of updates that are lost, and of values that go stale."""

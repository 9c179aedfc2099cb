"""Experiments as data: specifications, jobs, a store that survives a kill, a runner."""

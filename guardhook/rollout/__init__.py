"""Rollout files: a run as lines of events, and what can be proven with them."""

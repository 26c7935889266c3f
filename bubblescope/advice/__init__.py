"""Advice: what would help, ranked by what the replay says it gains."""

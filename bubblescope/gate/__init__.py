"""Whether a run is worse than it may be: rules, baselines, and what of a difference is noise."""

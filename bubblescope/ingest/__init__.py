"""From files to `RankTrace`: formats are told by content, and each has one module."""

"""Tests of bubblescope."""

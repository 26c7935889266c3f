"""What-if: the measured run replayed with something changed."""

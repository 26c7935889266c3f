"""What one rank's trace tells by itself: a list of small passes from events to a timeline."""

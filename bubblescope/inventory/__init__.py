"""What files are: one file at a time, then all of them as one job."""

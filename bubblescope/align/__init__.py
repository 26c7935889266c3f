"""What needs the other ranks: layout, clocks, pairs of messages, and the job as a whole."""

"""From a job to numbers; nothing here draws or prints."""

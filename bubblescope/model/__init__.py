"""The values that everything else passes around; nothing here reads files or knows of printing."""

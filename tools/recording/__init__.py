"""What the recorders share: a stage that sleeps, a rank's process, files that tell nothing of the machine, a command.

The top level of these modules needs nothing but Python, so that a recorder explains itself where PyTorch is missing.
"""

"""Fuzz targets for what reads traces; CONTRIBUTING.md says how to run them."""

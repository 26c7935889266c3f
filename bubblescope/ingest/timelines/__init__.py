"""Instrumented timelines: files in which somebody's own code named the forwards and backwards of a pipeline.

`words.py` knows what slices and columns are called, `rows.py` parts the rows of a file by rank; `chrome.py`,
`primus.py`, `table.py` (with `columns.py`, `csv.py`, `parquet.py`) know the formats.
"""

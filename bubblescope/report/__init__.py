"""The renderers: each turns a `Report` into text or bytes, and computes nothing that a reader could doubt.

`wording`, `verdict`, `facts` and `tables` choose the words and the digits, `summary` gathers them,
and `terminal` and `markdown` only lay them out. `json` and `csv` write the numbers as they are.
"""

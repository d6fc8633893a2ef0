"""Ordinary tables, as they are found: their dialect and the types of their columns are decided from the first rows.

A text table is sniffed (`sniff`), its cells are gathered (`cells`), what each column holds is decided from what was
seen of it (`evidence`, `decisions`), and encoders (`encoders`) turn cells into features. A table that turns out to be
plain numbers in plain CSV is read by the strict reader, and stays as fast.
"""

"""Ordinary tables, whose dialect and column types are inferred from the first rows.

The dialect of a text table is inferred (`sniff`), its cells are collected (`cells`), the type of each column is
inferred from statistics of its cells (`evidence`, `decisions`), and encoders (`encoders`) turn cells into features. A
table that turns out to be plain numbers in plain CSV is read by the strict reader, at its speed.
"""

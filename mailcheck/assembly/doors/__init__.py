"""Builds the doors: what speaks HTTP, each in a module of its own.

A new door is a module here and a line in ``late.py``.
"""

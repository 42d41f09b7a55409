"""Evaluation of a mail as a receiver does it, and the price of each finding."""

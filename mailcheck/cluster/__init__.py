"""Counters and wake-ups: in this process, or shared by many."""

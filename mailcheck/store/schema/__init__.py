"""The schema in numbered SQL files. The statements of a released file never change."""

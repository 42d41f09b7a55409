"""The schema in numbered SQL files; a file that was released is never changed."""

"""Operations on developer inboxes."""

"""Operations on deliverability tests."""

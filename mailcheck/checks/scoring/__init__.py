"""The reputation score of a domain: outcomes, weights and the sum."""

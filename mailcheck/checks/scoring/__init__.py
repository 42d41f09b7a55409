"""How good a domain's mail set-up is, in points: outcomes, weights, the score."""

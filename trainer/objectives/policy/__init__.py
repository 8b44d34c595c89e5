"""Objectives of policies: sampled responses, advantages, ratios."""

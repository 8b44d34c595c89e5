"""The judge that comes in the box: the probability of yes against no, from one forward pass per criterion.

Calls on the same conversation share its keys and values, so a criterion costs its own tokens and nothing is generated.
"""

"""The judge that comes with the product: the probability of yes against no, from one forward pass per criterion.

Calls on the same conversation share its keys and values. So a criterion costs only its own tokens, and nothing is generated.
"""

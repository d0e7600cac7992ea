"""The modern default: x + f(norm(x)) and a final norm on both stacks.

Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
None of the five published re-implementations has it. It trains without warm-up tricks
and is what `checkpoints/reverse` uses.
"""

SETTINGS = {"norm": "pre", "final_norm": True}

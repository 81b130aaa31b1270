"""The contract with user code: processors, their context, punctuators, handlers and timestamp extractors.

Only contracts and the built-in policies are here; what runs them is in compiler/ and task/.
"""

"""What workers say of themselves, turned into what decisions are made from.

looks.py      one look at an app: the /status pages of its workers, and what follows from one of them alone
measuring.py  two looks become the Measures that scaling decides from
"""

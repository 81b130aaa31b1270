"""Where workers run, behind one protocol.

api.py            Runtime, and the values it takes and gives
specification.py  a definition becomes the WorkerSpec of a slot
local.py          processes of this machine: one per slot, kept by a process of its own (keeper.py)
simulated.py      no processes at all: for tests and benchmarks of what is above

All runtimes pass the same contract (tests/contracts/runtime_contract.py).
"""

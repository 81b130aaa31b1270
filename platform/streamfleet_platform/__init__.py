"""The control plane of a fleet of Streamfleet apps.

model/         what an app and a fleet are: pure values, no I/O
definitions/   YAML files in Git or in a directory become that model, with the place every value came from
topologies/    an app's topology as a lock, made in a confined child process; two locks compared
scaling/       how many slots an app should have, and why

It knows the engine by its root only (`import streamfleet`), and never imports the code of an app.
"""

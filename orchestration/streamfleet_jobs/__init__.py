"""PySpark jobs over the state of apps: audits of changelogs, bootstraps of stores. They write JSON, and know no control plane."""

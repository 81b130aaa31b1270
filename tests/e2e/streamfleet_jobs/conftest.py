from tests.audit_lab.fixtures import lab, running_app, spark

__all__ = ["lab", "running_app", "spark"]

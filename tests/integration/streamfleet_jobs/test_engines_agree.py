from tests.audit_lab.agreement import compare_on_random_logs


def test_both_engines_say_the_same_of_random_logs(spark, tmp_path_factory):
    compare_on_random_logs(spark, tmp_path_factory.mktemp, examples=3)

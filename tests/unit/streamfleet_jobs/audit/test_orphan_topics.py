import msgspec

from streamfleet_jobs.audit.findings import verdict_of
from streamfleet_jobs.audit.orphan_topics import orphan_findings, orphans
from streamfleet_jobs.audit.spec import AuditSpec, StoreSpec, TopicSpec

SPEC = AuditSpec(
    "run",
    "shop",
    "shop",
    "127.0.0.1:9",
    "out",
    (StoreSpec("s", "shop-s-changelog", 1),),
    repartition_topics=(TopicSpec("shop-by-key-repartition", 1),),
    former_topics=("shop-old-changelog", "shop-gone-changelog"),
)
USED = ["shop-s-changelog", "shop-by-key-repartition"]
OTHERS = ["orders", "shop-out", "workshop-s-changelog", "shop", "shops-s-changelog", "__consumer_offsets"]


def test_topics_that_are_used_and_those_of_others_are_no_orphans():
    assert orphans(SPEC, USED + OTHERS) == ()


def test_what_looks_like_the_apps_and_is_not_used_is_told_and_nothing_more():
    there = [*USED, *OTHERS, "shop-s-e1-changelog", "shop-before-repartition", "shop-old-changelog"]
    found = orphan_findings(SPEC, orphans(SPEC, there))
    assert [(finding.topic, finding.evidence["recorded"]) for finding in found] == [
        ("shop-before-repartition", False),
        ("shop-old-changelog", True),
        ("shop-s-e1-changelog", False),
    ]
    assert {(finding.rule, finding.severity) for finding in found} == {("orphan_topic", "info")}
    assert verdict_of(found) == "clean"
    assert "nothing deletes it by its name" in found[0].advice


def test_a_topic_that_an_app_uses_again_is_none():
    again = msgspec.structs.replace(SPEC, former_topics=("shop-s-changelog",))
    assert orphans(again, USED) == ()

import base64
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from streamfleet_devbroker.storage import NodeSpec, new_id, prepare_node, server_settings, stored_cluster_id


def nodes(count, directory):
    return [NodeSpec(i + 1, 9092 + i, 19092 + i, directory / f"node-{i + 1}") for i in range(count)]


def settings_of(node, quorum, overrides=None):
    lines = server_settings(node, quorum, overrides or {}).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_one_node_replicates_nothing(tmp_path):
    (node,) = nodes(1, tmp_path)
    settings = settings_of(node, [node])
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:19092"
    assert settings["offsets.topic.replication.factor"] == "1"
    assert settings["transaction.state.log.min.isr"] == "1"


def test_three_nodes_vote_together_and_replicate_three_times(tmp_path):
    quorum = nodes(3, tmp_path)
    settings = settings_of(quorum[1], quorum)
    assert settings["node.id"] == "2"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:19092,2@127.0.0.1:19093,3@127.0.0.1:19094"
    assert settings["transaction.state.log.replication.factor"] == "3"
    assert settings["transaction.state.log.min.isr"] == "2"


def test_every_listener_is_on_the_loopback_interface(tmp_path):
    (node,) = nodes(1, tmp_path)
    listeners = settings_of(node, [node])["listeners"].split(",")
    assert all("://127.0.0.1:" in listener for listener in listeners)


@given(st.dictionaries(st.sampled_from(["num.partitions", "log.retention.ms", "node.id"]), st.just("7")))
def test_what_is_asked_for_wins_over_what_we_set(overrides):
    (node,) = nodes(1, Path("/nowhere"))
    assert overrides.items() <= settings_of(node, [node], overrides).items()


def test_data_that_is_there_keeps_its_cluster(tmp_path):
    (node,) = nodes(1, tmp_path)
    for cluster_id in ("first", "second"):
        prepare_node(node, [node], checkpoint=b"x", cluster_id=cluster_id, overrides={}, log_level="INFO")
    assert stored_cluster_id(node.data_directory) == "first"
    assert stored_cluster_id(tmp_path / "elsewhere") is None


def test_ids_are_sixteen_bytes_and_never_look_like_an_option():
    for _ in range(500):
        text = new_id()
        assert not text.startswith("-")
        assert len(base64.urlsafe_b64decode(text + "==")) == 16

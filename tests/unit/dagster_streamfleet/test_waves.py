from dagster_streamfleet.waves import plan_wave

GOING = lambda _key: "going"


def test_new_intents_go_together_under_one_key():
    wave = plan_wave(["a", "b"], None, GOING, now=0)
    assert sorted(wave.run_keys) == ["a", "b"]
    assert len(set(wave.run_keys.values())) == 1


def test_one_by_one_each_has_a_key_of_its_own():
    assert len(set(plan_wave(["a", "b"], None, GOING, now=0, together=False).run_keys.values())) == 2


def test_what_was_sent_is_not_sent_again_while_its_run_goes_or_has_succeeded():
    cursor = plan_wave(["a"], None, GOING, now=0).cursor
    assert not plan_wave(["a"], cursor, GOING, now=9999).run_keys
    assert not plan_wave(["a"], cursor, lambda _key: "succeeded", now=9999).run_keys


def test_a_lost_cursor_gives_the_same_key_again():
    assert plan_wave(["b", "a"], None, GOING, now=0).run_keys == plan_wave(["a", "b"], "spoilt", GOING, now=99).run_keys


def test_a_failed_run_is_tried_again_later_under_another_key_and_later_still():
    failed = lambda _key: "failed"
    first = plan_wave(["a"], None, failed, now=0)
    assert not plan_wave(["a"], first.cursor, failed, now=29).run_keys
    second = plan_wave(["a"], first.cursor, failed, now=30)
    assert second.run_keys["a"] != first.run_keys["a"]
    assert not plan_wave(["a"], second.cursor, failed, now=89).run_keys
    assert plan_wave(["a"], second.cursor, failed, now=90).run_keys


def test_what_is_no_longer_asked_for_is_forgotten():
    cursor = plan_wave(["a"], None, GOING, now=0).cursor
    assert plan_wave([], cursor, GOING, now=1).cursor == "{}"

import json
import time
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.definitions.fleet import App
from streamfleet_platform.definitions.loader import load_fleet
from streamfleet_platform.definitions.references import _ambiguous_ids
from streamfleet_platform.definitions.tree import DirectoryTree
from streamfleet_platform.definitions.validation import MAX_PROBLEMS, validate
from streamfleet_platform.definitions.yaml_nodes import node_of, parse_yaml
from streamfleet_platform.errors import Place
from streamfleet_platform.model.app_definition import AppDefinition

EXAMPLES = Path(__file__).parents[4] / "examples" / "fleet"


def by_path(app):
    return {".".join(value.path): value for value in app.values()}


def test_the_example_fleet_is_loaded():
    fleet = load_fleet(DirectoryTree(EXAMPLES))
    assert fleet.apps["order-enrichment"].spec.run.guarantee == "exactly_once_v2"
    assert fleet.apps["order-enrichment"].spec.scale.max == 4
    assert fleet.priority_of("order-enrichment") == 100


def test_an_effective_value_knows_the_file_and_line_that_set_it(files):
    files.write(
        "fleet.yaml",
        """\
apiVersion: streamfleet/v1
kind: Fleet
metadata: {name: shop}
spec:
  clusters: {dev: {bootstrap: "localhost:9092"}}
  defaults:
    scale: {max: 3, min: 2}
    health: {noProgress: 1m}
  tiers:
    gold:
      defaults:
        scale:
          max: 5
""",
    )
    files.app("orders", metadata=", tier: gold", scale="{mode: advise}")
    values = by_path(files.load().apps["orders"])
    assert (values["spec.scale.max"].value, values["spec.scale.max"].place) == (5, Place("fleet.yaml", 13, 16))
    assert values["spec.scale.min"].place == Place("fleet.yaml", 7, 26)
    assert values["spec.scale.mode"].place == Place("apps/orders.yaml", 9, 17)
    assert (values["spec.state.standbys"].value, str(values["spec.state.standbys"].place)) == (1, "built-in tier gold")
    assert values["spec.health.noProgress"].value == 60_000
    assert (values["spec.health.maxRestore"].value, values["spec.health.maxRestore"].place) == (1_800_000, None)


def test_the_app_wins_over_its_tier_the_tier_over_the_fleet_and_the_fleet_over_what_is_built_in(files):
    fleet = (files.root / "fleet.yaml").read_text()
    assert _standbys(files, fleet, "") == 1
    assert _standbys(files, fleet + "  defaults: {state: {standbys: 2}}\n", "") == 2
    with_tier = fleet + "  defaults: {state: {standbys: 2}}\n  tiers: {gold: {defaults: {state: {standbys: 3}}}}\n"
    assert _standbys(files, with_tier, "") == 3
    assert _standbys(files, with_tier, "  state: {standbys: 0}") == 0


def _standbys(files, fleet, spec):
    files.write("fleet.yaml", fleet)
    files.app("orders", metadata=", tier: gold", spec=spec)
    return files.load().apps["orders"].spec.state.standbys


def test_an_unknown_field_is_refused_with_its_place_and_what_was_meant(files):
    files.app("orders", spec="  state:\n    standby: 1\n  scale: {slo: {catchup: 20m}}")
    assert files.problems() == [
        "apps/orders.yaml:10:5: unknown field 'standby' in spec.state; did you mean standbys?",
        "apps/orders.yaml:11:17: unknown field 'catchup' in spec.scale.slo; did you mean catchUp?",
    ]


def test_all_problems_of_all_files_are_told_at_once(files):
    files.app("one", cluster=None)
    files.app("two", scale="{min: 3, max: 2}", health="{noProgress: 5}")
    files.write("apps/three.yaml", "a: [")
    files.write("apps/four.yml", "a: 1")
    files.write("apps/deep/five.yaml", "a: 1")
    assert files.problems() == [
        "apps/deep/five.yaml: definitions are named apps/NAME.yaml; move it, with lower-case letters, digits and -",
        "apps/four.yml: definitions are named apps/NAME.yaml; move it, with lower-case letters, digits and -",
        "apps/one.yaml:4:1: spec.cluster is missing; add it",
        "apps/three.yaml:2:1: this is no YAML: did not find expected node content; check indentation and quotes",
        "apps/two.yaml:9:3: spec.scale: min 3 is above max 2; raise max or lower min",
        (
            "apps/two.yaml:10:24: spec.health.noProgress: 5 is not a duration; write a whole number with its unit, such as "
            "500ms, 60s, 20m, 1h or 3d"
        ),
    ]


def test_what_nothing_honours_yet_is_refused_with_what_to_do(files):
    fleet = (files.root / "fleet.yaml").read_text()
    files.app("one", code=f'{{entrypoint: "shop.app:topology", image: shop/app, digest: "sha256:{"0" * 64}"}}')
    files.write("fleet.yaml", fleet + "  runtime: {kind: kubernetes}\n  follow: {branch: main, every: 100ms}\n")
    problems = files.problems()
    assert problems[:2] == [
        (
            "fleet.yaml:6:19: spec.runtime.kind: the runtime kubernetes is not there yet; "
            "write local: processes on the server's machine"
        ),
        "fleet.yaml:7:33: spec.follow.every: a branch cannot be looked at so often; write 1s or more",
    ]
    files.write("fleet.yaml", fleet + "  runtime: {kind: local}\n  follow: {branch: main, every: 1s}\n")
    assert files.problems() == [
        (
            "apps/one.yaml:5:50: code.image is for a runtime that runs images, and there is none yet; "
            "leave image and digest out: workers run the code of the source"
        )
    ]


def test_apps_that_want_more_slots_than_the_fleet_has_are_refused(files):
    fleet = (files.root / "fleet.yaml").read_text()
    files.app("one", scale="{min: 2, max: 5}")
    files.app("two", scale="{min: 2, max: 5}")
    files.write("fleet.yaml", fleet + "  budgets: {slots: 3}\n")
    [problem] = files.problems()
    assert "the apps want 4 slots at least, the fleet's budget is 3" in problem
    files.write("fleet.yaml", fleet + "  budgets: {slots: 4}\n")
    assert len(files.load().apps) == 2


def test_wrong_kinds_of_values_are_named_as_a_writer_knows_them(files):
    files.app(
        "orders",
        generation='"1"',
        topology="{requireNames: 1}",
        run="[a]",
        state="{standbys: 1.5}",
        errors="{onBadRecord: contniue}",
        scale="{max: 0}",
        labels="{}",
    )
    assert [problem.split(": ", 1)[1] for problem in files.problems()] == [
        "spec.generation should be a whole number, but is text; write a whole number",
        "spec.topology.requireNames should be true or false, but is 1; write true or false",
        "spec.run should be a mapping, but is a list; write a mapping",
        "spec.state.standbys should be a whole number, but is 1.5; write a whole number",
        "spec.errors.onBadRecord cannot be 'contniue'; did you mean continue?",
        "spec.scale.max is 0; write at least 1",
        (
            "unknown field 'labels' in spec; there are applicationId, cluster, code, errors, generation, health, inputs, outputs, "
            "protect, rollout, run, scale, state, topology"
        ),
    ]


def test_defaults_are_checked_even_if_no_app_has_them(files):
    files.write(
        "fleet.yaml",
        (files.root / "fleet.yaml").read_text()
        + "  defaults: {scale: {maximum: 3}, cluster: dev}\n  tiers:\n    silver: {defaults: {scale: {min: 2}, helth: {}}}\n",
    )
    files.app("orders")
    assert files.problems() == [
        "fleet.yaml:6:22: unknown field 'maximum' in spec.scale; did you mean max?",
        "fleet.yaml:6:35: spec.defaults cannot give cluster; it says what an app is: write it there",
        "fleet.yaml:8:42: unknown field 'helth' in spec; did you mean health?",
    ]


def test_defaults_that_only_an_app_completes_are_fine(files):
    files.write("fleet.yaml", (files.root / "fleet.yaml").read_text() + "  defaults: {scale: {min: 2}}\n")
    files.app("orders", scale="{max: 4}")
    assert files.load().apps["orders"].spec.scale.min == 2
    files.app("payments")
    assert files.problems() == [
        "apps/payments.yaml:4:1: with what fleet.yaml:6:14 gives: spec.scale: min 2 is above max 1; raise max or lower min"
    ]


def test_what_is_missing_is_said_with_what_to_write_where_there_is_only_one_thing(files):
    files.write("apps/orders.yaml", "kind: StreamsApp\nmetadata: {name: orders}\n")
    assert files.problems() == [
        "apps/orders.yaml:1:1: apiVersion is missing; write apiVersion: streamfleet/v1",
        "apps/orders.yaml:1:1: spec is missing; add it",
        "apps/orders.yaml:2:1: metadata.owner is missing; add it",
    ]


def test_a_fleet_file_must_be_there(files):
    (files.root / "fleet.yaml").unlink()
    assert files.problems() == [
        "fleet.yaml: there is no fleet.yaml; a definitions directory has one at its root, with spec.clusters"
    ]


def test_the_file_is_named_after_the_app(files):
    files.app("orders")
    (files.root / "apps/orders.yaml").rename(files.root / "apps/payments.yaml")
    assert files.problems() == [
        "apps/payments.yaml:3:18: app orders is in the file apps/payments.yaml; name the file orders.yaml"
    ]


def test_problems_of_the_fleet_do_not_hide_those_of_apps_nor_broken_apps_those_of_others(files):
    files.write("fleet.yaml", (files.root / "fleet.yaml").read_text() + "  budgt: {}\n")
    files.app("one", scale="{maxx: 1}")
    assert [problem.partition(": ")[0] for problem in files.problems()] == ["apps/one.yaml:9:11", "fleet.yaml:6:3"]
    files.write("fleet.yaml", (files.root / "fleet.yaml").read_text().replace("  budgt: {}\n", ""))
    files.app("two", inputs="{a: {app: one, output: any}, b: {app: none, output: any}}")
    assert [problem.partition(": ")[0] for problem in files.problems()] == ["apps/one.yaml:9:11", "apps/two.yaml:8:49"]


def test_a_file_full_of_mistakes_is_refused_without_a_hint_for_each(files):
    files.app("one", scale="{" + ", ".join(f"m{n}: 1" for n in range(4000)) + "}")
    began = time.process_time()
    problems = files.problems()
    assert time.process_time() - began < 2
    assert len(problems) == MAX_PROBLEMS + 1 and "3950 more problems" in problems[0]


def test_a_flood_of_files_is_refused(files, monkeypatch):
    monkeypatch.setattr("streamfleet_platform.definitions.loader.MAX_APP_FILES", 3)
    for name in "abcd":
        files.app(name)
    assert files.problems() == ["apps: there are 4 files, more than 3; make it several fleets"]


def test_symbolic_links_are_not_followed(files, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "x.yaml"
    outside.write_text("a: 1")
    files.app("orders")
    (files.root / "apps/link.yaml").symlink_to(outside)
    assert files.problems() == ["apps/link.yaml: this is a symbolic link; put the file itself there"]


def test_references_to_what_is_not_there_are_refused(files):
    files.app("upstream", outputs="{lines: {topic: lines}}", metadata=", tier: goold")
    files.app("one", inputs="{a: {app: upstraem, output: lines}, b: {app: upstream, output: line}}", cluster="dve")
    assert files.problems() == [
        "apps/one.yaml:6:12: there is no cluster dve; did you mean dev?",
        "apps/one.yaml:8:21: input a: there is no app upstraem; did you mean upstream?",
        "apps/one.yaml:8:74: input b: app upstream has no output line; did you mean lines?",
        "apps/upstream.yaml:3:47: there is no tier goold; did you mean gold?",
    ]


def test_apps_that_feed_each_other_are_reported_as_a_cycle(files):
    files.app("a", inputs="{back: {app: c, output: out}}", outputs="{out: {topic: t1}}")
    files.app("b", inputs="{from: {topic: t1}}", outputs="{out: {topic: t2}}")
    files.app("c", inputs="{from: {app: b, output: out}}", outputs="{out: {topic: t3}}")
    files.app("d", inputs="{from: {app: c, output: out}}", outputs="{loop: {topic: t4}}")
    lineage = files.load().lineage
    assert lineage.cycles == (("a", "b", "c"),)
    assert lineage.downstream_of("c") == {"a", "b", "c", "d"}
    assert lineage.downstream_of("d") == frozenset()


def test_an_application_id_that_begins_with_another_is_refused(files):
    files.app("pay")
    files.app("pay-eu")
    files.app("payment")
    files.app("twice", applicationId="pay")
    assert files.problems() == [
        (
            "apps/pay-eu.yaml:7:18: application id pay-eu begins with that of app pay, pay; internal topics of the two could have "
            "the same name: choose another"
        ),
        (
            "apps/twice.yaml:7:18: application id pay is also that of app pay; they would share topics, group and state: choose "
            "another"
        ),
    ]


IDS = st.from_regex(r"[ab]{1,2}(-[ab]{1,2}){0,3}", fullmatch=True)


@given(st.lists(IDS, min_size=1, max_size=8, unique=True))
def test_ids_are_refused_exactly_when_stores_could_give_the_same_changelog(ids):
    apps = {application_id: _app(application_id) for application_id in ids}
    is_ambiguous = any(one != other and other.startswith(f"{one}-") for one in ids for other in ids)
    assert bool(list(_ambiguous_ids(apps))) == is_ambiguous


def _app(application_id):
    document = {
        "apiVersion": "streamfleet/v1",
        "kind": "StreamsApp",
        "metadata": {"name": application_id, "owner": "team"},
        "spec": {
            "code": {"entrypoint": "a:b"},
            "cluster": "dev",
            "applicationId": application_id,
            "inputs": {"a": {"topic": "a"}},
        },
    }
    node = node_of(document, Place(f"apps/{application_id}.yaml"))
    return App(f"apps/{application_id}.yaml", AppDefinition.model_validate(document), node)


NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True).filter(
    lambda name: name not in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
)
TOPICS = st.from_regex(r"[a-z][a-zA-Z0-9._-]{0,12}[a-z]", fullmatch=True)
DURATIONS = st.builds("{}{}".format, st.integers(0, 500), st.sampled_from(["ms", "s", "m", "h", "d"]))
SPECS = st.fixed_dictionaries(
    {
        "code": st.just({"entrypoint": "shop.app:topology"}),
        "cluster": NAMES,
        "applicationId": NAMES,
        "inputs": st.dictionaries(NAMES, st.fixed_dictionaries({"topic": TOPICS}), min_size=1, max_size=3),
    },
    optional={
        "generation": st.integers(1, 9),
        "outputs": st.dictionaries(
            NAMES, st.fixed_dictionaries({"topic": TOPICS}, optional={"partitions": st.integers(1, 64)}), max_size=3
        ),
        "state": st.fixed_dictionaries({}, optional={"standbys": st.integers(0, 3)}),
        "run": st.fixed_dictionaries({"slot": st.fixed_dictionaries({"cpu": st.sampled_from([1, 0.5, 2.25])})}),
        "scale": st.fixed_dictionaries(
            {"max": st.integers(1, 50)}, optional={"slo": st.fixed_dictionaries({"catchUp": DURATIONS})}
        ),
        "health": st.fixed_dictionaries({}, optional={"noProgress": DURATIONS, "maxRestore": DURATIONS}),
    },
)
DOCUMENTS = st.builds(
    lambda name, spec: {
        "apiVersion": "streamfleet/v1",
        "kind": "StreamsApp",
        "metadata": {"name": name, "owner": "team"},
        "spec": spec,
    },
    NAMES,
    SPECS,
)


@given(DOCUMENTS)
def test_a_definition_means_the_same_as_json_in_blocks_and_in_braces(document):
    texts = [json.dumps(document), yaml.safe_dump(document), yaml.safe_dump(document, default_flow_style=True)]
    read = [validate(AppDefinition, parse_yaml(text.encode(), "x.yaml")) for text in texts]
    definition, problems = read[0]
    assert problems == [] and definition is not None
    assert read == [(definition, [])] * 3


@given(DOCUMENTS, st.data())
def test_a_field_that_nobody_knows_is_refused_wherever_it_is(document, data):
    document = json.loads(json.dumps(document))  # strategies share their parts
    target, path = document, []
    while True:
        sections = [
            key for key, value in target.items() if isinstance(value, dict) and key not in ("inputs", "outputs")
        ]
        if not sections or data.draw(st.booleans()):
            break
        path.append(data.draw(st.sampled_from(sorted(sections))))
        target = target[path[-1]]
    target["nobodyKnows"] = 1
    _, problems = validate(AppDefinition, parse_yaml(json.dumps(document).encode(), "x.yaml"))
    assert [problem.fact for problem in problems] == [
        f"unknown field 'nobodyKnows' in {'.'.join(path) or 'the definition'}"
    ]

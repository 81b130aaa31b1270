import time

import pytest


@pytest.mark.parametrize(
    "setting",
    [
        "plugin.library.paths: /tmp/x.so",
        "ssl.engine.location: /tmp/x.so",
        "ssl.providers: x",
        "sasl.kerberos.kinit.cmd: rm",
        'sasl.oauthbearer.token.endpoint.url: "http://169.254.169.254/"',
        "ssl.ca.location: /etc/passwd",
        "producer.ssl.key.location: /etc/passwd",
        "transactional.id: x",
        "consumer.group.id: x",
        "group.id: x",
        "isolation.level: read_uncommitted",
        "consumer.isolation.level: read_uncommitted",
        "bootstrap.servers: elsewhere:9092",
        "application.id: other",
        "state.dir: /",
        'store.epochs: "counts:3"',
        "security.protocol: plaintext",
        "enable.ssl.certificate.verification: false",
        "no.such.setting: 1",
        "commit.interval.ms: soon",
        'producer.linger.ms: "1\\n2"',
    ],
)
def test_a_setting_outside_the_allow_list_is_refused_where_it_stands(files, setting):
    files.app("orders", spec=f"  run:\n    config:\n      {setting}")
    (problem,) = files.problems()
    assert problem.startswith("apps/orders.yaml:11:")
    assert setting.split(":")[0] in problem


@pytest.mark.parametrize("prefix", ["", "consumer.", "restore.consumer."])
def test_what_nobody_may_set_is_said_so_and_nothing_else_is_suggested(files, prefix):
    files.app("orders", run=f"{{config: {{{prefix}group.id: x}}}}")
    (problem,) = files.problems()
    assert f"setting {prefix}group.id is the engine's; leave it out: it is the application id" in problem
    assert "did you mean" not in problem


def test_settings_of_the_engine_and_its_clients_are_taken(files):
    files.app("orders", run="{config: {commit.interval.ms: 1000, producer.linger.ms: 5, default.key.serde: string}}")
    assert files.load().apps["orders"].spec.run.config["commit.interval.ms"] == 1000


def test_a_misspelt_setting_gets_the_engines_hint(files):
    files.app("orders", run="{config: {commit.intervall.ms: 1000}}")
    assert "did you mean commit.interval.ms?" in files.problems()[0]


SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "spec",
    [
        f"  run: {{config: {{sasl.password: {SECRET}}}}}",
        f'  run: {{config: {{sasl.username: "-----BEGIN PRIVATE KEY-----{SECRET}"}}}}',
        f'  run: {{config: {{producer.compression.type: "password={SECRET}"}}}}',
        f'  outputs: {{a: {{topic: "http://u:{SECRET}@host"}}}}',
        f"  run: {{secrets: {{kafka: {{env: {SECRET}}}}}}}",
        f'  run: {{secrets: {{kafka: "{SECRET}"}}}}',
    ],
)
def test_a_secret_that_is_written_out_is_refused(files, spec):
    files.app("orders", spec=spec)
    assert SECRET not in "\n".join(files.problems())


def test_looking_for_secrets_in_a_long_text_takes_no_longer_than_reading_it(files):
    texts = [
        "a" * 200_000,
        "eyJ" * 70_000,
        "password " * 20_000,
        "-----BEGIN " * 20_000,
        "a://" * 50_000,
        "a://:" * 40_000,
    ]
    for text in texts:
        files.app("orders", metadata=f', labels: {{a: "{text}"}}')
        began = time.process_time()
        files.problems()
        assert time.process_time() - began < 2


def test_there_are_not_thousands_of_settings(files):
    files.app("orders", run="{config: {" + ", ".join(f"m{n}: 1" for n in range(4000)) + "}}")
    began = time.process_time()
    assert any("at most 200" in problem for problem in files.problems())
    assert time.process_time() - began < 5


def test_a_secret_is_named_and_its_variable_allowed_by_the_fleet(files):
    run = '{config: {sasl.password: "${kafka}"}, secrets: {kafka: {env: KAFKA_PASSWORD}}}'
    files.app("orders", run=run)
    assert files.problems() == [
        "apps/orders.yaml:9:69: apps may not read the variable KAFKA_PASSWORD; list it in fleet.yaml under spec.secrets.env"
    ]
    files.write("fleet.yaml", (files.root / "fleet.yaml").read_text() + "  secrets: {env: [KAFKA_PASSWORD]}\n")
    assert files.load().apps["orders"].spec.run.secrets["kafka"].env == "KAFKA_PASSWORD"


def test_a_reference_to_an_unknown_secret_is_refused(files):
    files.app("orders", run='{config: {sasl.password: "${kafak}"}, secrets: {kafka: {file: kafka/password}}}')
    assert files.problems() == [
        "apps/orders.yaml:9:33: setting sasl.password wants the secret 'kafak', which is not under secrets; did you mean kafka?"
    ]


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../b", ".ssh/id", "a//b", "a\\0b", "", "a/"])
def test_a_secret_file_stays_below_its_directory(files, path):
    files.app("orders", run=f'{{secrets: {{kafka: {{file: "{path}"}}}}}}')
    assert len(files.problems()) == 1


@pytest.mark.parametrize(
    "bootstrap",
    [
        "169.254.169.254:80",
        "file:///etc/passwd",
        "a" * 10_000 + ":1",
        "a:1\\n",
        "a:0",
        "a:99999",
        "user@a:1",
        "a",
        "[fe80::1]:1",
    ],
)
def test_a_clusters_brokers_are_addresses_of_brokers(files, bootstrap):
    files.write("fleet.yaml", (files.root / "fleet.yaml").read_text().replace("localhost:9092", bootstrap))
    assert len(files.problems()) == 1


@pytest.mark.parametrize(
    "setting",
    ["ssl.endpoint.identification.algorithm: none", "consumer.enable.ssl.certificate.verification: false"],
)
def test_a_cluster_may_weaken_its_connection_only_when_it_says_so(files, setting):
    text = (files.root / "fleet.yaml").read_text()
    insecure = text.replace('9092"', f'9092", config: {{{setting}}}')
    files.write("fleet.yaml", insecure)
    assert "switches a check off" in files.problems()[0]
    files.write("fleet.yaml", insecure.replace("config:", "allowInsecure: true, config:"))
    files.app("orders")
    assert files.load()

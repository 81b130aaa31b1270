"""A broker that wants TLS and a login, sees the login again now and then, and allows what ACLs say."""

from __future__ import annotations

import logging
import subprocess

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ScramCredentialInfo,
    UserScramCredentialUpsertion,
)
from tests.integration.streamfleet.kafka.group_actors import create_topic

from streamfleet_devbroker import Cluster, ClusterSpec
from streamfleet_devbroker.directories import cache_directory
from streamfleet_devbroker.java import find_java
from streamfleet_devbroker.ports import free_ports

_silent = logging.getLogger(__name__)
_silent.addHandler(logging.NullHandler())
_silent.propagate = False  # the broker goes before its client does

HOST = "127.0.0.1"
SESSION_MS = 1_500
"""How long the broker believes a login."""


def make_certificate(directory):
    """A certificate for the loopback address that is its own authority."""
    keytool = find_java(cache_directory(), print).executable.resolve().parent / "keytool"
    store = [
        "-alias",
        "broker",
        "-keystore",
        str(directory / "broker.p12"),
        "-storetype",
        "PKCS12",
        "-storepass",
        "secret",
    ]
    extensions = [f"san=ip:{HOST}", "bc:critical=ca:true", "ku:critical=digitalSignature,keyCertSign"]
    subprocess.run(
        [str(keytool), "-genkeypair", *store, "-keyalg", "EC", "-dname", "CN=broker", "-validity", "2"]
        + [part for extension in extensions for part in ("-ext", extension)],
        check=True,
        capture_output=True,
    )
    exported = subprocess.run([str(keytool), "-exportcert", "-rfc", *store], check=True, capture_output=True)
    (directory / "ca.pem").write_bytes(exported.stdout)


class SecureBroker:
    """`admin_servers`: without login, allowed everything. `secure_servers`: TLS and SASL, allowed what ACLs say."""

    def __init__(self, directory):
        plain, controller, secure = free_ports(3)
        self.admin_servers, self.secure_servers = f"{HOST}:{plain}", f"{HOST}:{secure}"
        self.ca_location = str(directory / "ca.pem")
        make_certificate(directory)
        login = "org.apache.kafka.common.security"
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{plain},SECURE://{HOST}:{secure},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{plain},SECURE://{HOST}:{secure}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.secure.plain.sasl.jaas.config": f'{login}.plain.PlainLoginModule required user_app="app-secret";',
            "listener.name.secure.scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
            "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
            "ssl.keystore.location": str(directory / "broker.p12"),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": "secret",
            "connections.max.reauth.ms": str(SESSION_MS),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        self.cluster = Cluster.start(ClusterSpec(directory / "kafka", port=plain, settings=settings))
        self.admin = AdminClient({"bootstrap.servers": self.admin_servers}, logger=_silent)
        self.topic = create_topic(self.admin_servers)

    def add_scram_user(self, name, mechanism):
        credential = UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), b"scram-secret")
        self.admin.alter_user_scram_credentials([credential])[name].result(20)

    def allow(self, user, kind, name, operation, pattern=ResourcePatternType.LITERAL):
        acl = AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        self.admin.create_acls([acl])[acl].result(20)

    def forbid(self, user, kind, name):
        acl = AclBindingFilter(
            kind, name, ResourcePatternType.ANY, f"User:{user}", None, AclOperation.ANY, AclPermissionType.ANY
        )
        assert self.admin.delete_acls([acl])[acl].result(20)

    def settings(self, mechanism="PLAIN", user="app", password="app-secret", **more):
        return {
            "bootstrap.servers": self.secure_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": self.ca_location,
            **{key.replace("_", "."): value for key, value in more.items()},
        }

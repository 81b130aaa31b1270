"""The project files name exactly the pinned artifacts, nothing of their own dependencies, and no repository."""

from xml.etree import ElementTree as ET

from streamfleet_devbroker import ivy, maven
from streamfleet_devbroker.jars import broker_jars


def test_the_maven_project_has_the_pinned_jars_and_excludes_what_they_need():
    project = ET.fromstring(maven.project_file(broker_jars()))
    found = [
        ":".join(dependency.findtext(tag, "") for tag in ("groupId", "artifactId", "version"))
        for dependency in project.iter("dependency")
    ]
    assert found == [jar.coordinates for jar in broker_jars()]
    assert len(list(project.iter("exclusion"))) == len(found)


def test_the_ivy_module_has_the_pinned_jars_without_what_they_need():
    module = ET.fromstring(ivy.module_file(broker_jars()))
    dependencies = list(module.iter("dependency"))
    assert [f"{d.get('org')}:{d.get('name')}:{d.get('rev')}" for d in dependencies] == [
        jar.coordinates for jar in broker_jars()
    ]
    assert {d.get("transitive") for d in dependencies} == {"false"}


def test_no_project_file_names_a_repository():
    for text in (maven.project_file(broker_jars()), ivy.module_file(broker_jars())):
        assert "://" not in text
        assert "repositor" not in text

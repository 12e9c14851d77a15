"""Definitions out of the files of upstream modules, and the pins of these modules."""

from pathlib import Path

import pytest

from tools.control_plane.crds import SOURCES, CrdSource, read_definitions
from tools.versions import GO_MODULES

TWO_DEFINITIONS = """---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.18.0
  name: widgets.example.com
spec:
  enum:
  - =
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
"""


def test_every_definition_of_a_file_is_found_with_its_lone_equals_sign(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(TWO_DEFINITIONS)
    widgets, gadgets = read_definitions(file)
    assert widgets["metadata"]["name"] == "widgets.example.com"
    assert widgets["spec"] == {"enum": ["="]}
    assert gadgets["metadata"]["name"] == "gadgets.example.com"


def test_a_definition_inside_a_helm_condition_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(f"{{{{- if .Values.enabled }}}}\n{TWO_DEFINITIONS}{{{{- end }}}}\n")
    names = [each["metadata"]["name"] for each in read_definitions(file)]
    assert names == ["widgets.example.com", "gadgets.example.com"]


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_the_checksum_of_every_module_is_pinned(source: CrdSource) -> None:
    checksums = (GO_MODULES / "crds" / "go.sum").read_text()
    assert f"{source.module} {source.version} h1:" in checksums

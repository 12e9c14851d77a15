"""Definitions out of the files of upstream modules, and the pins of these modules."""

from pathlib import Path

import pytest

from tools.control_plane.crds import SOURCES, CrdSource, definitions
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


def test_every_definition_of_a_file_is_found_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(TWO_DEFINITIONS)
    found = dict(definitions([file]))
    assert list(found) == ["widgets.example.com", "gadgets.example.com"]
    assert "  - =\n" in found["widgets.example.com"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_the_checksum_of_every_module_is_pinned(source: CrdSource) -> None:
    checksums = (GO_MODULES / "crds" / "go.sum").read_text()
    assert f"{source.module} {source.version} h1:" in checksums

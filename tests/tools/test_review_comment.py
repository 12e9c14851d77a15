"""The comment, from events as the CLI writes them."""

import json
import re
from typing import Any

import pytest

from tools.review.comment import LONGEST_BYTES, Run, marker, render
from tools.review.events import parse

STACK = "urn:pulumi:demo::neuron-serving::pulumi:pulumi:Stack::neuron-serving-demo"
SERVING = "urn:pulumi:demo::neuron-serving::neuron-serving:index:Serving::tinyllama"
DEPLOYMENT = "urn:pulumi:demo::neuron-serving::neuron-serving:index:Serving$kubernetes:apps/v1:Deployment::tinyllama"
GROUP = "urn:pulumi:demo::neuron-serving::neuron-serving:index:NodeGroup$aws:eks/nodeGroup:NodeGroup::trainium"
BLINDED = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "[secret]"}
TOKEN = "hf_" + "x" * 34


def step(operation: str, urn: str, old: Any = None, new: Any = None, **metadata: Any) -> dict[str, Any]:
    """The event before a step; `old` and `new` are inputs."""
    states = {name: None if inputs is None else {"inputs": inputs} for name, inputs in (("old", old), ("new", new))}
    return {"resourcePreEvent": {"metadata": {"op": operation, "urn": urn, "logical": True, **states, **metadata}}}


def diagnostic(severity: str, message: str, urn: str = STACK) -> dict[str, Any]:
    return {"diagnosticEvent": {"severity": severity, "message": message, "urn": urn, "color": "never"}}


def policy(rule: str, level: str, message: str) -> dict[str, Any]:
    return {"policyEvent": {"policyName": rule, "enforcementLevel": level, "message": message, "resourceUrn": STACK}}


def summary(**changes: int) -> dict[str, Any]:
    return {"summaryEvent": {"resourceChanges": changes}}


def comment(*events: dict[str, Any], exit_code: int = 0, last_lines: tuple[str, ...] = ()) -> str:
    return render(parse(map(json.dumps, events)), Run("demo", exit_code, last_lines))


def node_group(instance_type: str, nodes: int = 1, capacity_type: str = "ON_DEMAND") -> dict[str, Any]:
    return {
        "instanceTypes": [instance_type],
        "capacityType": capacity_type,
        "scalingConfig": {"maxSize": nodes},
        "updateConfig": {"updateStrategy": "MINIMAL"},
    }


def test_the_first_line_names_the_stack_so_that_its_comment_is_found_again() -> None:
    assert comment(summary(same=3)).startswith(marker("demo"))


def test_no_change_is_said() -> None:
    assert "**no changes**, 3 unchanged" in comment(step("same", STACK, {}, {}), summary(same=3))


def test_a_replacement_stands_first_with_what_forces_it() -> None:
    made = step("create", f"{STACK}-x", None, {"a": 1})
    replaced = step(
        "replace",
        GROUP,
        node_group("inf2.xlarge"),
        node_group("trn1.2xlarge"),
        keys=["instanceTypes"],
        detailedDiff={"instanceTypes[0]": {"diffKind": "update-replace", "inputDiff": True}},
    )
    text = comment(made, replaced, summary(create=1, replace=1))
    assert "**1 replaced, 1 created**, 0 unchanged" in text
    assert "| replaced | `trainium` (NodeGroup) | `instanceTypes[0]`: `inf2.xlarge` to `trn1.2xlarge` |" in text
    assert text.index("replaced: aws:eks") < text.index("created: pulumi:pulumi:Stack")


def test_a_list_that_forces_a_replacement_is_one_reason() -> None:
    old, new = {"subnetIds": ["a", "b", "c"]}, {"subnetIds": ["b", "c"]}
    text = comment(step("replace", GROUP, old, new, keys=["subnetIds"]))
    assert "| `subnetIds`: `a, b, c` to `b, c` |" in text


def test_of_long_texts_the_part_that_differs_is_shown() -> None:
    old, new = {"policy": f"{'a' * 500}old{'b' * 500}"}, {"policy": f"{'a' * 500}new{'b' * 500}"}
    text = comment(step("update", GROUP, old, new))
    assert re.search(r"- policy: \.\.\.a+oldb+\.\.\. \(1003 characters\)\n\+ policy: \.\.\.a+newb+", text)


def test_a_deletion_says_whether_the_object_itself_goes() -> None:
    gone = step("delete", GROUP, {"a": 1})
    gone["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = True
    assert "no longer in the program, but kept in the cloud (retain on delete)" in comment(gone)


FORECAST = "next rollout: surge 0, unavailable 1, about 294 s without a ready endpoint (why)"
ROLLOUTS = [
    (step("update", DEPLOYMENT, {"spec": {"template": {"a": 1}}}, {"spec": {"template": {"a": 2}}}), "**rolled out by"),
    (step("update", DEPLOYMENT, {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}), "not touched; its next rollout"),
    (step("same", DEPLOYMENT, {}, {}), "not touched; its next rollout"),
    (step("create", DEPLOYMENT, None, {"spec": {}}), "made by this change; later rollouts"),
]


@pytest.mark.parametrize(("change", "expected"), ROLLOUTS)
def test_the_forecast_says_whether_this_change_starts_the_rollout(change: dict[str, Any], expected: str) -> None:
    text = comment(diagnostic("info", FORECAST, SERVING), change)
    assert f"- `tinyllama`: {expected}" in text
    assert "about 294 s without a ready endpoint" in text


def test_what_the_layers_say_is_noted_and_what_others_say_is_not() -> None:
    layer = "urn:pulumi:demo::neuron-serving::neuron-serving:index:NodeGroup::trainium"
    text = comment(diagnostic("info", "AMI release 1", layer), diagnostic("info", "a provider starts", GROUP))
    assert "#### Notes\n\n- AMI release 1" in text
    assert "a provider starts" not in text


def test_quota_and_cost_compare_before_with_after() -> None:
    config = {"preludeEvent": {"config": {"neuron-serving:quotas": '{"trn": 8}'}}}
    text = comment(config, step("update", GROUP, node_group("trn1.2xlarge"), node_group("trn1.2xlarge", 2)))
    assert "- **does not fit:** `trn on-demand: 16 (2 x trn1.2xlarge) = 16 of 8 vCPUs` (before: 8)" in text
    assert "1.34 USD (1 x trn1.2xlarge, on-demand) | 2.69 USD (2 x trn1.2xlarge, on-demand)" in text
    assert "| **together** | 1.34 USD | **2.69 USD** |" in text


@pytest.mark.parametrize(("instance_type", "capacity_type"), [("trn2.3xlarge", "ON_DEMAND"), ("inf2.xlarge", "SPOT")])
def test_what_has_no_price_says_so(instance_type: str, capacity_type: str) -> None:
    assert "no price known (1 x" in comment(step("create", GROUP, None, node_group(instance_type, 1, capacity_type)))


def test_policy_results_are_told_apart() -> None:
    asked = {"policyAnalyzeSummaryEvent": {"passed": ["probes", "pinned-ami"], "failed": ["memory-limits"]}}
    text = comment(
        summary(create=1),
        asked,
        policy("memory-limits", "mandatory", "Limits\nx (server): no limit.\nWhy: because\nFix: set one"),
        policy("verified-ami", "advisory", "Checked\ny: unknown driver.\nWhy: because\nFix: pin one"),
        policy("policy-exceptions", "advisory", "Reported\nprobes let pass until 2027-03-31 (reason).\nWhy: because"),
        policy(
            "pinned-ami", "advisory", "can't run policy 'pinned-ami' from policy pack 'x' during preview: not yet known"
        ),
        exit_code=255,
    )
    assert "### Preview of `demo`: refused by 1 policy" in text
    assert "- `memory-limits` x (server): no limit.<br>Fix: set one" in text
    assert "- `verified-ami` y: unknown driver.<br>Fix: pin one" in text
    assert text.index("#### Refused") < text.index("#### Policies")
    assert "Excepted:\n- `policy-exceptions` probes let pass until 2027-03-31 (reason)." in text
    assert "- `pinned-ami`: not yet known" in text


def test_faults_of_the_stack_file_are_a_list_and_no_traceback() -> None:
    message = f"2 faults in the configuration of stack demo; nothing was changed\na: found {TOKEN}\nb: found <b>"
    text = comment(diagnostic("error", message), exit_code=1)
    assert "### Preview of `demo`: failed\n\nThe preview ended early" in text
    assert "> - a: found \\[secret\\]\n> - b: found \\<b\\>" in text


def test_a_preview_that_ended_early_has_no_diff() -> None:
    assert "Full diff" not in comment(step("create", STACK, None, {}), diagnostic("error", "no"), exit_code=1)


def test_of_a_traceback_the_last_line_stands_out_and_the_rest_is_folded() -> None:
    text = comment(diagnostic("error", "Traceback (most recent call last):\n  File x\nValueError: no"), exit_code=1)
    assert "> [!CAUTION]\n> ValueError: no\n" in text
    assert text.index("<details>") < text.index("File x")


def test_where_pulumi_fails_without_a_word_its_last_lines_are_shown() -> None:
    text = comment(exit_code=255, last_lines=("error: no stack named 'demo' found", f"token {TOKEN}"))
    assert "error: no stack named 'demo' found" in text
    assert TOKEN not in text


def test_a_log_that_a_crash_cut_off_is_read_as_far_as_it_goes() -> None:
    lines = [json.dumps(step("create", GROUP, None, {"a": 1})), '{"resourcePreEvent": {"meta']
    text = render(parse(lines), Run("demo", 255))
    assert "The preview ended early" in text
    assert "@@ created: aws:eks/nodeGroup:NodeGroup trainium @@" in text


def test_no_secret_gets_into_the_comment_from_anywhere() -> None:
    events = (
        {"preludeEvent": {"config": {"neuron-serving:hfToken": TOKEN}}},
        step("update", DEPLOYMENT, {"env": [{"name": "A", "value": TOKEN}]}, {"env": [{"name": "A", "value": "b"}]}),
        diagnostic("warning", f"found {TOKEN}"),
        policy("no-plaintext-hf-token", "mandatory", f"found {TOKEN}"),
    )
    whole = comment(*events, exit_code=255, last_lines=(TOKEN,))
    assert "- env[0].value: [secret]" in whole
    ended_early = comment(*events, diagnostic("error", f"found {TOKEN}"), exit_code=1)
    assert "found \\[secret\\]" in ended_early
    assert TOKEN not in whole + ended_early


def test_a_changed_secret_shows_that_it_changes_and_nothing_else() -> None:
    difference = {"data.token": {"diffKind": "update", "inputDiff": True}}
    text = comment(step("update", DEPLOYMENT, {"data": BLINDED}, {"data": BLINDED}, detailedDiff=difference))
    assert "- data.token: (other)\n+ data.token: (other)" in text
    assert "ciphertext" not in text


def test_a_long_preview_keeps_to_the_limit_and_says_what_is_left_out() -> None:
    many = [
        step("create", f"{DEPLOYMENT}-{number}", None, {"a": {str(key): "x" * 90 for key in range(9)}})
        for number in range(200)
    ]
    text = comment(*many, summary(create=200))
    assert len(text.encode()) <= LONGEST_BYTES
    assert "more do not fit into a comment: `make preview` prints all of it" in text
    assert text.count("<details>") == text.count("</details>")


def test_a_preview_whose_very_findings_are_long_keeps_to_the_limit() -> None:
    many = [policy("x", "mandatory", f"{number} {'y' * 5000}") for number in range(200)]
    many += [diagnostic("error", "\n".join("z" * 3000 for _ in range(300)) + str(number)) for number in range(60)]
    text = comment(*many, exit_code=1)
    assert len(text.encode()) <= LONGEST_BYTES

"""The rules of the pack. To add one: write its file here and its row below, then `python -m tools.policy_docs`."""

from policy.rule import Rule
from policy.rules import (
    autoscaler_owns_replicas,
    graceful_drain,
    guarded_endpoint,
    host_memory_fit,
    image_line_matches_accelerator,
    memory_limits,
    no_open_ssh,
    no_plaintext_hf_token,
    nodepool_disruption,
    nodepool_limits,
    pinned_ami,
    pinned_image,
    private_model_bucket,
    probes,
    queue_based_autoscaling,
    rollout_capacity,
    shared_cache_access_mode,
    supported_image_line,
    vcpu_quota,
    verified_ami,
)

RULES: tuple[Rule, ...] = (
    # Pods
    memory_limits.RULE,
    host_memory_fit.RULE,
    probes.RULE,
    graceful_drain.RULE,
    no_plaintext_hf_token.RULE,
    pinned_image.RULE,
    image_line_matches_accelerator.RULE,
    supported_image_line.RULE,
    shared_cache_access_mode.RULE,
    # Rollout, scaling, capacity
    rollout_capacity.RULE,
    queue_based_autoscaling.RULE,
    autoscaler_owns_replicas.RULE,
    vcpu_quota.RULE,
    nodepool_limits.RULE,
    nodepool_disruption.RULE,
    # Nodes, storage, network
    pinned_ami.RULE,
    verified_ami.RULE,
    no_open_ssh.RULE,
    private_model_bucket.RULE,
    guarded_endpoint.RULE,
)

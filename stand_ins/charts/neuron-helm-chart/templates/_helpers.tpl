{{/* The combinations that the real chart refuses. */}}
{{- define "refusals" -}}
{{- if and .Values.draDriver.enabled (or .Values.devicePlugin.enabled .Values.scheduler.enabled) -}}
{{- fail "draDriver excludes devicePlugin and scheduler" -}}
{{- end -}}
{{- if and .Values.scheduler.enabled (not .Values.devicePlugin.enabled) -}}
{{- fail "scheduler needs devicePlugin" -}}
{{- end -}}
{{- if and .Values.scheduler.enabled .Values.scheduler.customScheduler.enabled .Values.scheduler.defaultScheduler.enabled -}}
{{- fail "customScheduler excludes defaultScheduler" -}}
{{- end -}}
{{- end -}}

{{/* Pods go to Neuron nodes alone, as with the real chart. */}}
{{- define "onNeuronNodes" -}}
tolerations:
  - operator: Exists
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - key: node.kubernetes.io/instance-type
              operator: In
              values: {{ toJson .Values.neuronInstances }}
{{- end -}}

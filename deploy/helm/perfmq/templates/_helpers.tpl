{{- define "perfmq.name" -}}
{{- if contains "perfmq" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-perfmq" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "perfmq.selector" -}}
app.kubernetes.io/name: perfmq
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "perfmq.labels" -}}
{{ include "perfmq.selector" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "perfmq.scenario" -}}
{{ .Values.existingScenario | default (printf "%s-scenario" (include "perfmq.name" .)) }}
{{- end }}

{{- define "perfmq.login" -}}
{{ .Values.broker.existingSecret | default (printf "%s-broker" (include "perfmq.name" .)) }}
{{- end }}

{{- define "perfmq.token" -}}
{{ .Values.rendezvous.existingSecret | default (printf "%s-token" (include "perfmq.name" .)) }}
{{- end }}

{{- define "perfmq.tls" -}}
{{ .Values.rendezvous.tls.existingSecret | default (ternary (printf "%s-tls" (include "perfmq.name" .)) "" .Values.rendezvous.tls.generate) }}
{{- end }}

{{- define "perfmq.claim" -}}
{{ .Values.rendezvous.persistentVolumeClaim.existingClaim | default (printf "%s-results" (include "perfmq.name" .)) }}
{{- end }}

{{/* What both Jobs have: the lifetime of the Job. */}}
{{- define "perfmq.job" -}}
{{- if hasKey .Values "ttlSecondsAfterFinished" -}}
ttlSecondsAfterFinished: {{ int64 .Values.ttlSecondsAfterFinished }}
{{- end }}
{{- end }}

{{/* The metadata of a pod: (list $ component). */}}
{{- define "perfmq.podMetadata" -}}
{{- $root := first . -}}
labels:
  {{- include "perfmq.labels" $root | nindent 2 }}
  app.kubernetes.io/component: {{ last . }}
  {{- with $root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What both pods have: no rights, no restart, no variables of services. */}}
{{- define "perfmq.pod" -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65534
  runAsGroup: 65534
  fsGroup: 65534
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "perfmq.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

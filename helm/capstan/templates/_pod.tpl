{{- /*
The pods of replicas and workers, of { top, component, command, settings, secrets, resources, nodeSelector, tolerations }.
Settings stand in the pod itself, so that a change rolls the pods; secrets come as files, so that they stand in no
environment, no manifest and no `kubectl describe`.
*/}}
{{- define "capstan.pod" -}}
{{- $values := .top.Values }}
metadata:
  labels:
    {{- include "capstan.selector" . | nindent 4 }}
    {{- with $values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "capstan.serviceAccount" .top | quote }}
  automountServiceAccountToken: false
  # A service named capstan would set CAPSTAN_PORT=tcp://…, which the program refuses.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "capstan.graceSeconds" . }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    seccompProfile:
      type: RuntimeDefault
  {{- with .nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "capstan.selector" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  containers:
    - name: capstan
      image: {{ include "capstan.image" .top | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: [{{ .command }}]
      env:
        {{- include "capstan.env" . | nindent 8 }}
      ports:
        - name: http
          containerPort: 8080
        {{- if $values.metrics.enabled }}
        - name: metrics
          containerPort: 9090
        {{- end }}
      {{- include "capstan.probes" . | nindent 6 }}
      {{- if gt ($values.preStopSeconds | int64) 0 }}
      lifecycle:
        preStop:
          exec:
            command: [sleep, {{ $values.preStopSeconds | quote }}]
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with .resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: secrets
          mountPath: /run/secrets/capstan
          readOnly: true
        # Where tools run; nothing else is written.
        - name: tmp
          mountPath: /tmp
        {{- with $values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          {{- range $variable, $secret := .secrets }}
          - secret:
              name: {{ required (printf "secrets.%s.existingSecret: name the Secret that holds it" $variable) $secret.existingSecret | quote }}
              items:
                - key: {{ required (printf "secrets.%s.key: name the key in the Secret" $variable) $secret.key | quote }}
                  path: {{ $variable }}
          {{- end }}
    - name: tmp
      emptyDir: {}
    {{- with $values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{- define "capstan.env" -}}
- name: CAPSTAN_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: CAPSTAN_PORT
  value: "8080"
{{- if .top.Values.metrics.enabled }}
- name: CAPSTAN_METRICS_PORT
  value: "9090"
{{- end }}
{{- range $variable, $secret := .secrets }}
- name: {{ $variable }}_FILE
  value: /run/secrets/capstan/{{ $variable }}
{{- end }}
{{- range $name, $value := .settings }}
- name: {{ $name }}
  value: {{ if kindIs "string" $value }}{{ $value | quote }}{{ else }}{{ $value | int64 | quote }}{{ end }}
{{- end }}
{{- with .top.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /*
/healthz answers before the schema is there, so a migration may take as long as it takes; it never asks the database.
A process that stands still ends itself at CAPSTAN_STALL_LIMIT; liveness is a minute later, for what that misses.
*/}}
{{- define "capstan.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: {{ div (add (include "capstan.seconds" .settings.CAPSTAN_STALL_LIMIT | int64) 69) 10 }}
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

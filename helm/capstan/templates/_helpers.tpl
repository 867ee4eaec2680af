{{- /*
With `-worker` behind it 63 characters at most. A release has up to 53, so no two releases are cut to the same name.
Helm takes releases that begin with a digit or have dots; Kubernetes takes no such service.
*/}}
{{- define "capstan.fullname" -}}
{{- if not (regexMatch "^[a-z][a-z0-9-]*$" .Release.Name) }}
{{- fail (printf "release %s: its name has to begin with a letter and to have no dots, as a Service's does" .Release.Name) }}
{{- end }}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 56 }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 56 }}
{{- end }}
{{- end }}

{{- define "capstan.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "capstan.fullname" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "capstan.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Of { top, component }. A deployment can't change it any more. */}}
{{- define "capstan.selector" -}}
app.kubernetes.io/name: {{ .top.Chart.Name }}
app.kubernetes.io/instance: {{ .top.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "capstan.image" -}}
{{- $repository := required "image.repository: say where you pushed the image that the Dockerfile builds" .Values.image.repository }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else }}{{ printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* A duration of the program (90s, 500ms, 2h, 0) in whole seconds, rounded up. */}}
{{- define "capstan.seconds" -}}
{{- $count := regexFind "^[0-9]+" . | int64 }}
{{- $unit := regexFind "[a-z]*$" . }}
{{- if eq $unit "ms" }}{{ div (add $count 999) 1000 }}
{{- else }}{{ mul $count (get (dict "" 1 "s" 1 "m" 60 "h" 3600 "d" 86400) $unit) }}
{{- end }}
{{- end }}

{{- /*
Of { top, settings }. A process ends within drain time + kill grace + 5 s of its SIGTERM, which comes once preStop is
over; 5 s more for the container to be gone. What is left after that is killed, and its runs wait for their lease to end.
*/}}
{{- define "capstan.graceSeconds" -}}
{{- $drain := include "capstan.seconds" .settings.CAPSTAN_DRAIN_TIMEOUT | int64 }}
{{- $kill := include "capstan.seconds" .settings.CAPSTAN_KILL_GRACE | int64 }}
{{- $needed := add .top.Values.preStopSeconds $drain $kill 10 }}
{{- $given := .top.Values.terminationGracePeriodSeconds }}
{{- if kindIs "invalid" $given }}{{ $needed }}
{{- else if lt ($given | int64) $needed }}
{{- fail (printf "terminationGracePeriodSeconds: at least %d, which preStopSeconds, CAPSTAN_DRAIN_TIMEOUT and CAPSTAN_KILL_GRACE need with 10 s more; or leave it null" $needed) }}
{{- else }}{{ $given | int64 }}
{{- end }}
{{- end }}

{{- /* What only a secret may hold, or only the chart may set, is refused by name and never shown. */}}
{{- define "capstan.checkExtraEnv" -}}
{{- range .Values.extraEnv }}
{{- if regexMatch "^(CAPSTAN_|DATABASE_(DIRECT_)?URL)" .name }}
{{- fail (printf "extraEnv: %s belongs in settings or, by reference, in secrets" .name) }}
{{- end }}
{{- if and (hasKey . "value") (regexMatch "(?i)(passw|secret|token|credential|private|api_?key)" .name) }}
{{- fail (printf "extraEnv: %s may be a secret: give it by valueFrom.secretKeyRef" .name) }}
{{- end }}
{{- end }}
{{- end }}

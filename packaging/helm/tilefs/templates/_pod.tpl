{{- /* What both kinds of pods have. */ -}}

{{- define "tilefs.name" -}}
{{- if contains "tilefs" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-tilefs" (.Release.Name | trunc 56 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "tilefs.selector" -}}
app.kubernetes.io/name: tilefs
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "tilefs.labels" -}}
{{ include "tilefs.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- define "tilefs.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- /* Options that serve and mount share; the array comes after them. */ -}}
{{- define "tilefs.options" -}}
- --index-dir=none
{{- with .Values.cacheSize }}
- {{ printf "--cache-size=%s" . | quote }}
{{- end }}
{{- with .Values.at }}
{{- /* A number of milliseconds would be printed as 1.7e+12. */}}
- {{ printf "--at=%s" (kindIs "string" . | ternary . (. | int64 | toString)) | quote }}
{{- end }}
{{- range .Values.slices }}
- {{ printf "--slice=%s" . | quote }}
{{- end }}
{{- range .Values.options }}
- {{ . | quote }}
{{- end }}
- {{ required "uri is missing: the array or group to offer" .Values.uri | quote }}
{{- end -}}

{{- define "tilefs.environment" -}}
{{- with .Values.credentialsSecret }}
envFrom:
  - secretRef:
      name: {{ . | quote }}
{{- end }}
{{- $token := and (eq .Values.mode "serve") .Values.token.secretName }}
{{- if or $token .Values.env }}
env:
  {{- if $token }}
  - name: TILEFS_TOKEN
    valueFrom:
      secretKeyRef:
        name: {{ $token | quote }}
        key: {{ .Values.token.key | quote }}
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "tilefs.placement" -}}
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

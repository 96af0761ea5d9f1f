{{- define "rowplane.name" -}}
{{- $own := default .Chart.Name .Values.nameOverride -}}
{{- if contains $own .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name $own | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "rowplane.selector" -}}
app.kubernetes.io/name: rowplane
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rowplane.labels" -}}
{{ include "rowplane.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "rowplane.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{- define "rowplane.tlsSecret" -}}
{{ default (printf "%s-tls" (include "rowplane.name" .)) .Values.tls.existingSecret }}
{{- end }}

{{/* The Pod, of a Deployment on PostgreSQL and of a StatefulSet on SQLite. */}}
{{- define "rowplane.pod" -}}
metadata:
  labels:
    {{- include "rowplane.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "rowplane.name" . }}
  automountServiceAccountToken: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  # More than --shutdown-delay-duration and --shutdown-grace-period together.
  terminationGracePeriodSeconds: 30
  containers:
    - name: rowplane
      image: {{ include "rowplane.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --bind-address=0.0.0.0
        - --advertise-address=$(POD_IP)
        - --hostname-override=$(POD_NAME)
        - --tls-cert-file=/run/tls/tls.crt
        - --tls-private-key-file=/run/tls/tls.key
        - --token-auth-file=/run/access/tokens.csv
        - --service-account-signing-key-file=/run/access/sa.key
        - --service-account-key-file=/run/access/sa.key
        - --service-account-issuer=https://{{ include "rowplane.name" . }}.{{ .Release.Namespace }}.svc
        # Endpoints forget the Pod before its listener closes.
        - --shutdown-delay-duration=5s
        {{- if and (eq .Values.storage "postgres") .Values.postgres.passwordKey }}
        - --datastore-password-file=/run/postgres/{{ .Values.postgres.passwordKey }}
        {{- end }}
        {{- range .Values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: POD_NAME
          valueFrom: { fieldRef: { fieldPath: metadata.name } }
        - name: POD_IP
          valueFrom: { fieldRef: { fieldPath: status.podIP } }
        {{- if eq .Values.storage "postgres" }}
        - name: ROWPLANE_DATASTORE
          valueFrom: { secretKeyRef: { name: {{ .Values.postgres.existingSecret }}, key: {{ .Values.postgres.urlKey }} } }
        {{- end }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - { name: https, containerPort: 6443 }
      startupProbe:
        httpGet: { path: /readyz, port: https, scheme: HTTPS }
        periodSeconds: 1
        # A first start on a database of an earlier release may have to change its tables.
        failureThreshold: 600
      readinessProbe:
        httpGet: { path: /readyz, port: https, scheme: HTTPS }
        periodSeconds: 2
        timeoutSeconds: 5
      livenessProbe:
        httpGet: { path: /livez, port: https, scheme: HTTPS }
        periodSeconds: 10
        timeoutSeconds: 15
        failureThreshold: 8
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      volumeMounts:
        - { name: data, mountPath: /var/lib/rowplane }
        - { name: tmp, mountPath: /tmp }
        - { name: tls, mountPath: /run/tls, readOnly: true }
        - { name: access, mountPath: /run/access, readOnly: true }
        {{- if eq .Values.storage "postgres" }}
        - { name: postgres, mountPath: /run/postgres, readOnly: true }
        {{- end }}
  volumes:
    {{- if eq .Values.storage "postgres" }}
    - name: data
      emptyDir: {}
    - name: postgres
      secret: { secretName: {{ .Values.postgres.existingSecret }}, defaultMode: 0440 }
    {{- end }}
    - name: tmp
      emptyDir: {}
    - name: tls
      secret: { secretName: {{ include "rowplane.tlsSecret" . }}, defaultMode: 0440 }
    - name: access
      secret: { secretName: {{ include "rowplane.name" . }}-access, defaultMode: 0440 }
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.affinity }}
  affinity: {{- toYaml .Values.affinity | nindent 4 }}
  {{- else if eq .Values.storage "postgres" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: { matchLabels: { {{- include "rowplane.selector" . | replace "\n" ", " }} } }
  {{- end }}
{{- end }}

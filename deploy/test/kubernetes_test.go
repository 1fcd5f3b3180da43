// Package deploy tests the chart, the kustomization and the playbook beside it. It is a module of its own, so that Helm,
// Kustomize and the types of Kubernetes are no dependency of perfmq.
package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write deploy/kubernetes/perfmq.yaml and scenario.yaml, and testdata/")

// objects are what a release has.
type objects struct {
	jobs    map[string]*batchv1.Job
	secrets map[string]*corev1.Secret
	configs map[string]*corev1.ConfigMap
	service *corev1.Service
	claim   *corev1.PersistentVolumeClaim
	monitor *monitoringv1.PodMonitor
}

// decode reads manifests as the API server does that refuses fields which it does not know.
func decode(t *testing.T, text string) *objects {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme, monitoringv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	o := &objects{jobs: map[string]*batchv1.Job{}, secrets: map[string]*corev1.Secret{}, configs: map[string]*corev1.ConfigMap{}}
	for documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return o
		}
		require.NoError(t, err)
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		json, err := yaml.ToJSON(document)
		require.NoError(t, err)
		object, err := runtime.Decode(strict, json)
		require.NoError(t, err, "%s", document)
		switch object := object.(type) {
		case *batchv1.Job:
			o.jobs[object.Name] = object
		case *corev1.Secret:
			o.secrets[object.Name] = object
		case *corev1.ConfigMap:
			o.configs[object.Name] = object
		case *corev1.Service:
			o.service = object
		case *corev1.PersistentVolumeClaim:
			o.claim = object
		case *monitoringv1.PodMonitor:
			o.monitor = object
		default:
			t.Fatalf("%T", object)
		}
	}
}

// helm renders the chart as helm install does, with values in YAML.
func helm(t *testing.T, release, values string) (string, error) {
	t.Helper()
	chart, err := loader.Load("../helm/perfmq")
	require.NoError(t, err)
	require.NoError(t, chart.Validate())
	given, err := common.ReadValues([]byte(values))
	require.NoError(t, err)
	all, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: release, Namespace: "tests", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); strings.HasSuffix(name, ".yaml") && text != "" {
			fmt.Fprintf(&b, "---\n%s\n", text)
		}
	}
	notes := files["perfmq/templates/NOTES.txt"]
	require.Contains(t, notes, "job/")
	return b.String(), nil
}

// kustomize renders a folder as kubectl apply -k does.
func kustomize(t *testing.T, dir string) string {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err)
	text, err := resources.AsYaml()
	require.NoError(t, err)
	return string(text)
}

// golden compares a text with a file, or writes the file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "%s: go test -update writes it", file)
}

// check is true of each release: the pods have what they refer to, and shards is one value.
func (o *objects) check(t *testing.T, name string, shards int32, existing ...string) {
	t.Helper()
	load, rendezvous := o.jobs[name], o.jobs[name+"-rendezvous"]
	require.Len(t, o.jobs, 2)
	require.Equal(t, batchv1.IndexedCompletion, *load.Spec.CompletionMode)
	require.Equal(t, []int32{shards, shards, 0}, []int32{*load.Spec.Completions, *load.Spec.Parallelism, *load.Spec.BackoffLimitPerIndex})
	require.Zero(t, *rendezvous.Spec.BackoffLimit)
	require.Contains(t, container(load).Args, fmt.Sprintf("--shard=%d", shards))
	require.Contains(t, container(rendezvous).Args, fmt.Sprintf("--shards=%d", shards))
	require.Equal(t, load.Spec.TTLSecondsAfterFinished, rendezvous.Spec.TTLSecondsAfterFinished)
	for _, job := range o.jobs {
		spec := job.Spec.Template.Spec
		require.Equal(t, corev1.RestartPolicyNever, spec.RestartPolicy)
		require.EqualValues(t, 65534, *spec.SecurityContext.RunAsUser)
		require.False(t, *spec.AutomountServiceAccountToken)
		require.False(t, *spec.EnableServiceLinks, "PERFMQ_RENDEZVOUS_PORT is no setting of ours")
		c := container(job)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		mounts := map[string]string{}
		for _, m := range c.VolumeMounts {
			mounts[m.Name] = m.MountPath + "/"
		}
		for _, v := range spec.Volumes {
			require.Contains(t, mounts, v.Name)
			for _, name := range references(v) {
				if !slices.Contains(existing, name) {
					require.True(t, o.secrets[name] != nil || o.configs[name] != nil || o.claim != nil && o.claim.Name == name, name)
				}
			}
		}
		require.Len(t, mounts, len(spec.Volumes))
		for _, arg := range c.Args {
			require.NotContains(t, arg, "$(")
			path := arg[strings.Index(arg, "=")+1:]
			require.True(t, !strings.HasPrefix(path, "/") || slices.ContainsFunc(slices.Collect(maps.Values(mounts)), func(dir string) bool {
				return strings.HasPrefix(path, dir)
			}), arg)
		}
		if slices.Contains(slices.Collect(maps.Keys(job.Spec.Template.Labels)), "app.kubernetes.io/component") {
			require.Equal(t, job == rendezvous, includes(job.Spec.Template.Labels, o.service.Spec.Selector))
		}
	}
	if cpu := container(load).Resources; cpu.Limits.Cpu() != nil {
		require.True(t, cpu.Requests.Cpu().Equal(*cpu.Limits.Cpu()), "a load host that is throttled measures itself")
	}
	spread := load.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels
	require.True(t, includes(load.Spec.Template.Labels, spread))
	require.False(t, includes(rendezvous.Spec.Template.Labels, spread))
	for _, port := range o.service.Spec.Ports {
		require.True(t, slices.ContainsFunc(container(rendezvous).Ports, func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }))
	}
	if o.monitor != nil {
		require.True(t, includes(load.Spec.Template.Labels, o.monitor.Spec.Selector.MatchLabels))
		require.Equal(t, container(load).Ports[0].Name, *o.monitor.Spec.PodMetricsEndpoints[0].Port)
	}
	if o.claim != nil {
		require.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, o.claim.Spec.AccessModes)
	}
}

func container(job *batchv1.Job) corev1.Container { return job.Spec.Template.Spec.Containers[0] }

// includes reports whether labels have all of a selector.
func includes(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// references returns the names of a volume's objects.
func references(v corev1.Volume) (names []string) {
	switch {
	case v.Secret != nil:
		return []string{v.Secret.SecretName}
	case v.ConfigMap != nil:
		return []string{v.ConfigMap.Name}
	case v.PersistentVolumeClaim != nil:
		return []string{v.PersistentVolumeClaim.ClaimName}
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			} else {
				names = append(names, source.ConfigMap.Name)
			}
		}
	}
	return names
}

// every has each value that is not the default's.
const every = `
shards: 7
image: {repository: registry.example/perfmq, tag: "1.2", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
broker:
  url: amqps://broker:5671
  existingSecret: login
  tls: {existingSecret: broker-tls, clientCertificate: true}
existingScenario: soak
set: {rate: 9000, name: "a b"}
extraArgs: [--wait-for-broker=1m, "--label=note=x: y"]
metrics: {enabled: true, podMonitor: {enabled: true, labels: {release: prometheus}}}
rendezvous:
  port: 9443
  existingSecret: shared
  thresholds: ["response.p99 < 50ms", lost == 0]
  tls: {existingSecret: rendezvous-tls}
  web: {enabled: false}
  persistentVolumeClaim: {enabled: true, storageClassName: fast}
spread: {whenUnsatisfiable: DoNotSchedule}
ttlSecondsAfterFinished: null
labels: {team: load}
podLabels: {mesh: "off"}
podAnnotations: {sidecar.istio.io/inject: "false"}
nodeSelector: {pool: load}
tolerations: [{key: load, operator: Exists}]
`

// Each release is of types of Kubernetes, without a field that these do not have.
func TestChart(t *testing.T) {
	for _, c := range []struct {
		name, release, values string
		job                   string // its name
		shards                int32
		existing              []string
		golden                string
	}{
		{name: "default", release: "perfmq", job: "perfmq", shards: 3},
		{name: "one shard", release: "soak", values: "shards: 1", job: "soak-perfmq", shards: 1},
		{
			name: "every value", release: "x", values: every, job: "x-perfmq", shards: 7, golden: "testdata/every-value.yaml",
			existing: []string{"login", "broker-tls", "soak", "shared", "rendezvous-tls"},
		},
		{
			name: "a command line, a login, and a certificate of the release", release: "perfmq", job: "perfmq", shards: 3,
			values:   "args: [stomp, client, --duration=1m, queue://A]\nbroker: {user: u, password: p}\nrendezvous: {tls: {generate: true}, persistentVolumeClaim: {enabled: true, existingClaim: disk}}",
			existing: []string{"disk"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := helm(t, c.release, c.values)
			require.NoError(t, err)
			decode(t, text).check(t, c.job, c.shards, c.existing...)
			if c.golden != "" {
				golden(t, c.golden, text)
			}
		})
	}
}

// Mistakes in values are refused with the name of the value.
func TestChartRefuses(t *testing.T) {
	for values, message := range map[string]string{
		"shards: 0":                         "/shards",
		"shards: three":                     "/shards",
		"parallelism: 5":                    "parallelism",
		"image: {pullPolicy: Sometimes}":    "/image/pullPolicy",
		"rendezvous: {tls: {selfSigned: }}": "selfSigned",
		"args: run":                         "/args",
	} {
		_, err := helm(t, "perfmq", values)
		require.ErrorContains(t, err, message, values)
	}
}

// The token of a release is its own, and long enough.
func TestToken(t *testing.T) {
	token := func() string {
		text, err := helm(t, "perfmq", "")
		require.NoError(t, err)
		return string(decode(t, text).secrets["perfmq-token"].Data["token"])
	}
	first := token()
	require.Len(t, first, 40)
	require.NotEqual(t, first, token())
}

// The manifests of the kustomization are those of the chart; only scenario and token come from elsewhere.
func TestKustomization(t *testing.T) {
	text, err := helm(t, "perfmq", "existingScenario: perfmq-scenario\nrendezvous: {existingSecret: perfmq-token}")
	require.NoError(t, err)
	golden(t, "../kubernetes/perfmq.yaml", "# Of the chart deploy/helm/perfmq, written by go test -update in deploy/test.\n"+text)
	var values struct {
		Scenario string `json:"scenario"`
	}
	chart, err := os.ReadFile("../helm/perfmq/values.yaml")
	require.NoError(t, err)
	require.NoError(t, sigsyaml.Unmarshal(chart, &values))
	golden(t, "../kubernetes/scenario.yaml", values.Scenario)

	kustomization(t, strings.NewReplacer()).check(t, "perfmq", 3)
	many := kustomization(t, strings.NewReplacer("/spec/completions, value: 3", "/spec/completions, value: 11"))
	many.check(t, "perfmq", 11)
}

// kustomization renders a copy of deploy/kubernetes with a token, and changes in its files.
func kustomization(t *testing.T, change *strings.Replacer) *objects {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../kubernetes")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("a token that nobody guesses"), 0o600))
	for _, name := range []string{"kustomization.yaml", "scenario.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(change.Replace(string(text))), 0o600))
	}
	return decode(t, kustomize(t, dir))
}

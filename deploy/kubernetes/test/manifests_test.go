// Package kubernetes checks the manifests beside it. It is a module of its own, so that the types of Kubernetes are no
// dependency of perfmq.
package kubernetes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decode reads the only object of a manifest as the API server does that refuses fields which it does not know.
func decode(t *testing.T, name string) runtime.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return decodeText(t, name, text)
}

func decodeText(t *testing.T, name string, text []byte) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	json, err := yaml.ToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	object, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), json)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// All manifests are of types of Kubernetes, without a field that these do not have.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		decode(t, filepath.Base(file))
	}
}

// The load Job has as many pods as shards, all at once, repeats none, and sets each variable in its arguments.
func TestJob(t *testing.T) {
	job := decode(t, "job.yaml").(*batchv1.Job)
	spec := job.Spec
	if *spec.CompletionMode != batchv1.IndexedCompletion || *spec.Completions != *spec.Parallelism || *spec.BackoffLimit != 0 ||
		spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v", spec)
	}
	c := spec.Template.Spec.Containers[0]
	if want := fmt.Sprintf("--shard=%d", *spec.Completions); !slices.Contains(c.Args, want) {
		t.Errorf("%s is not in %v", want, c.Args)
	}
	known := map[string]bool{"JOB_COMPLETION_INDEX": true} // set by the Job
	for _, v := range c.Env {
		known[v.Name] = true
	}
	for _, arg := range c.Args {
		for rest := arg; ; {
			_, after, ok := strings.Cut(rest, "$(")
			if !ok {
				break
			}
			name, left, _ := strings.Cut(after, ")")
			if !known[name] {
				t.Errorf("%s: nothing sets %s", arg, name)
			}
			rest = left
		}
	}
	if !c.Resources.Requests.Cpu().Equal(*c.Resources.Limits.Cpu()) || c.Resources.Requests.Cpu().Cmp(resource.MustParse("1")) < 0 {
		t.Error("a load host that is throttled measures itself")
	}
}

// The Job that joins takes the folder of each pod, from the same volume.
func TestMergeJob(t *testing.T) {
	load, merge := decode(t, "job.yaml").(*batchv1.Job), decode(t, "merge.yaml").(*batchv1.Job)
	args := merge.Spec.Template.Spec.Containers[0].Args
	for i := range *load.Spec.Completions {
		if want := fmt.Sprintf("/results/%s-%d", load.Name, i); !slices.Contains(args, want) {
			t.Errorf("%s is not in %v", want, args)
		}
	}
	if len(args) != int(*load.Spec.Completions)+2 {
		t.Error(args)
	}
	volume := decode(t, "volume.yaml").(*corev1.PersistentVolumeClaim)
	for _, job := range []*batchv1.Job{load, merge} {
		if v := job.Spec.Template.Spec.Volumes[0]; v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != volume.Name {
			t.Error(v)
		}
	}
	if !slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteMany) {
		t.Error(volume.Spec.AccessModes)
	}
}

// shell runs commands in the root of the project. Commands in bin come before the machine's.
func shell(t *testing.T, commands, bin string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env, cmd.WaitDelay = "../../..", append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// The commands of docs/several-hosts.md come to their end with a run that fails, too, and start all pods at the moment
// that they name.
func TestCommands(t *testing.T) {
	text, err := os.ReadFile("../../../docs/several-hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Kubernetes\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	const kubectl = `#!/bin/sh
echo "$@" >>"$0.calls"
case "$1 $3" in
"create -") cat >"$0.job" ;;
"get perfmq") [ -e "$0.asked" ] && echo FailureTarget Failed || >"$0.asked" ;;
"get perfmq-merge") echo Complete ;;
esac
`
	bin := t.TempDir()
	for name, script := range map[string]string{"kubectl": kubectl, "sleep": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now()
	shell(t, block, bin)
	calls, err := os.ReadFile(filepath.Join(bin, "kubectl.calls"))
	if err != nil || !strings.HasSuffix(string(calls), "logs job/perfmq-merge\n") {
		t.Errorf("%v\n%s", err, calls)
	}
	created, err := os.ReadFile(filepath.Join(bin, "kubectl.job"))
	if err != nil {
		t.Fatal(err)
	}
	env := decodeText(t, "job.yaml", created).(*batchv1.Job).Spec.Template.Spec.Containers[0].Env
	at := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == "PERFMQ_START_AT" })
	if at < 0 {
		t.Fatal(env)
	}
	start, err := time.Parse(time.RFC3339, env[at].Value)
	if left := start.Sub(before); err != nil || left < 100*time.Second || left > 4*time.Minute {
		t.Error(env[at], err)
	}
}

// Another run has a Job of another name. The Job that joins it takes its folders and leaves the first run's alone.
func TestAnotherRun(t *testing.T) {
	renamed := func(name string) *batchv1.Job {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		command := regexp.MustCompile(`(?m)^#   (sed .*name: .*)$`).FindStringSubmatch(string(text))
		if command == nil {
			t.Fatal(name)
		}
		return decodeText(t, name, []byte(shell(t, command[1], ""))).(*batchv1.Job)
	}
	load, merge := renamed("job.yaml"), renamed("merge.yaml")
	if load.Name != "perfmq-2" || merge.Name != "perfmq-2-merge" || load.Labels["app.kubernetes.io/name"] != "perfmq" {
		t.Error(load.Name, merge.Name, load.Labels)
	}
	want := []string{"merge", "--result=/results/perfmq-2"}
	for i := range *load.Spec.Completions {
		want = append(want, fmt.Sprintf("/results/%s-%d", load.Name, i))
	}
	if args := merge.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, want) {
		t.Error(args)
	}
}

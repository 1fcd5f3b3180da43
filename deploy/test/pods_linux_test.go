package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// limit bounds a run of these tests.
const limit = 2 * time.Minute

// alone carries a test out in a process with a network of its own, in which all ports are free and nothing but a loopback
// exists. It is true in that process.
func alone(t *testing.T) bool {
	t.Helper()
	const sign = "DEPLOY_TEST_ALONE"
	if os.Getenv(sign) != "" {
		require.NoError(t, loopbackUp())
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = append(os.Environ(), sign+"=root")
	if os.Getuid() != 0 { // root of a user namespace may have a network and a root folder, too
		cmd.Env = append(os.Environ(), sign+"=user")
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	return false
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(lo))); errno != 0 {
		return errno
	}
	return nil
}

// build makes perfmq.
func build(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "perfmq")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", file, "./cmd/perfmq")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// cluster carries releases out: each pod is a process whose root folder has perfmq, its volumes and its names of
// services, and nothing else.
type cluster struct {
	*objects
	t      *testing.T
	perfmq string
}

type pod struct {
	root string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func (c *cluster) file(root, name string, data []byte) {
	file := filepath.Join(root, name)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(c.t, os.WriteFile(file, data, 0o644))
}

// start starts the pods of a Job.
func (c *cluster) start(job *batchv1.Job) (pods []*pod) {
	parallelism := int32(1)
	if job.Spec.Parallelism != nil {
		parallelism = *job.Spec.Parallelism
	}
	for i := range parallelism {
		p := &pod{root: filepath.Join(c.t.TempDir(), "root")}
		text, err := os.ReadFile(c.perfmq)
		require.NoError(c.t, err)
		c.file(p.root, "perfmq", text)
		require.NoError(c.t, os.Chmod(filepath.Join(p.root, "perfmq"), 0o755))
		c.file(p.root, "etc/hosts", []byte("127.0.0.1 broker "+c.service.Name+"\n"))
		c.mount(p.root, job.Spec.Template.Spec)
		spec := container(job)
		p.cmd = exec.Command("/perfmq", spec.Args...)
		p.cmd.Env = []string{fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i)}
		for _, v := range spec.Env {
			if value := c.value(v); value != "" {
				p.cmd.Env = append(p.cmd.Env, v.Name+"="+value)
			}
		}
		p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = "/", &p.log, &p.log
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root}
		if id := uint32(*job.Spec.Template.Spec.SecurityContext.RunAsUser); os.Getenv("DEPLOY_TEST_ALONE") == "root" {
			p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
		}
		require.NoError(c.t, p.cmd.Start())
		c.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
		pods = append(pods, p)
	}
	return pods
}

// value is what a pod sees of a variable.
func (c *cluster) value(v corev1.EnvVar) string {
	if v.ValueFrom == nil {
		return v.Value
	}
	ref := v.ValueFrom.SecretKeyRef
	if secret := c.secrets[ref.Name]; secret != nil {
		return secret.StringData[ref.Key] + string(secret.Data[ref.Key])
	}
	require.True(c.t, *ref.Optional)
	return ""
}

// mount makes the volumes of a pod.
func (c *cluster) mount(root string, spec corev1.PodSpec) {
	mounts := map[string]string{}
	for _, m := range spec.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for _, v := range spec.Volumes {
		dir := filepath.Join(root, mounts[v.Name])
		require.NoError(c.t, os.MkdirAll(dir, 0o755))
		switch {
		case v.EmptyDir != nil, v.PersistentVolumeClaim != nil:
			require.NoError(c.t, os.Chmod(dir, 0o777))
		case v.ConfigMap != nil:
			for name, text := range c.configs[v.ConfigMap.Name].Data {
				c.file(dir, name, []byte(text))
			}
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					for name, text := range c.configs[s.ConfigMap.Name].Data {
						c.file(dir, name, []byte(text))
					}
					continue
				}
				for _, item := range s.Secret.Items {
					c.file(dir, item.Path, c.secrets[s.Secret.Name].Data[item.Key])
				}
			}
		}
	}
}

// end waits for a pod's end and returns its exit status.
func (c *cluster) end(p *pod) int {
	timer := time.AfterFunc(limit/2, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// startBroker starts an embedded broker, for the time of a test.
func startBroker(t *testing.T, perfmq, address string) {
	t.Helper()
	broker := exec.Command(perfmq, "broker", "--listen-amqp", address, "--listen-stomp", "off", "--listen-rocketmq", "off", "--control", "off")
	require.NoError(t, broker.Start())
	t.Cleanup(func() {
		_ = broker.Process.Kill()
		_ = broker.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, limit/4, 20*time.Millisecond)
}

// requireMerged reads a merged result: each message arrived once.
func requireMerged(t *testing.T, dir, name string, shards, sent int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name, "result.json"))
	require.NoError(t, err)
	var result struct {
		Verification struct {
			Total struct{ Once, Lost, Duplicates int }
		}
		Parts []any
	}
	require.NoError(t, json.Unmarshal(text, &result))
	require.Equal(t, sent, result.Verification.Total.Once)
	require.Zero(t, result.Verification.Total.Lost+result.Verification.Total.Duplicates)
	require.Len(t, result.Parts, shards)
}

// carryOut runs a release on an embedded broker, and returns its rendezvous.
func (c *cluster) carryOut(name string) (rendezvous *pod, status int) {
	startBroker(c.t, c.perfmq, "127.0.0.1:5672")
	loads := c.start(c.jobs[name]) // they wait for the rendezvous
	rendezvous = c.start(c.jobs[name+"-rendezvous"])[0]
	for _, p := range loads {
		require.Zero(c.t, c.end(p), "%s", &p.log)
	}
	return rendezvous, c.end(rendezvous)
}

// Processes as the pods of a release, with its arguments, variables and volumes, make one load: the merged result has
// every message once.
func TestPods(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	const counts = `
scenario: |
  name: counts
  verify: true
  broker: {protocol: amqp}
  groups:
    senders: {role: producer, destination: queue://perfmq, producers: 6, message-count: "${count}", rate: 1500, max-pending: 100}
    readers: {role: consumer, destination: queue://perfmq, consumers: 6}
  vars: {count: 100}
`
	binary := build(t)
	for _, c := range []struct {
		name    string
		objects func(t *testing.T) *objects
		sent    int
		host    string
	}{
		{name: "chart", sent: 3000, objects: func(t *testing.T) *objects {
			text, err := helm(t, "perfmq", counts+"shards: 4\nset: {count: 3000}\nbroker: {user: u, password: p}\n"+
				"rendezvous: {thresholds: [lost == 0], tls: {generate: true}}")
			require.NoError(t, err)
			return decode(t, text)
		}},
		{name: "kustomization", sent: 1500, objects: func(t *testing.T) *objects {
			return kustomization(t, strings.NewReplacer("vars: {rate: 3000, workers: 12, time: 1m, warmup: 10s}", "vars: {rate: 1500, workers: 6}",
				`rate: "${rate}"`, `rate: "${rate}", message-count: 1500`, "warmup: ${warmup}\nduration: ${time}\n", ""))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &cluster{objects: c.objects(t), t: t, perfmq: binary}
			rendezvous, status := k.carryOut("perfmq")
			shown, _, _ := strings.Cut(rendezvous.log.String(), "<?xml")
			t.Log(shown)
			require.Zero(t, status)
			requireMerged(t, filepath.Join(rendezvous.root, "results"), "perfmq", int(*k.jobs["perfmq"].Spec.Completions), c.sent)
			log := rendezvous.log.String()
			for _, name := range []string{"perfmq.xml", "perfmq.md", "perfmq.html"} {
				report, err := os.ReadFile(filepath.Join(rendezvous.root, "results", name))
				require.NoError(t, err)
				require.Contains(t, log, string(report))
			}
		})
	}
}

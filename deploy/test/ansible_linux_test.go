package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The playbook makes one load on three hosts, which are network namespaces on a bridge, and fetches the merged result. A
// run that fails ends with a failure and its result. Nothing is left on the hosts.
func TestAnsible(t *testing.T) {
	t.Parallel()
	require.Zero(t, os.Getuid(), "only root may make the networks of three hosts")
	if !alone(t) {
		return
	}
	binary, base := build(t), t.TempDir()
	sh := func(script string) {
		out, err := exec.Command("sh", "-ec", script).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	sh("ip link add hosts type bridge; ip addr add 192.0.2.1/24 dev hosts; ip link set hosts up")
	inventory := "[perfmq]\n"
	for i := 1; i <= 3; i++ {
		network := fmt.Sprintf("perfmq-%d-%d", os.Getpid(), i)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", network).Run() })
		sh(fmt.Sprintf(`ip netns add %[1]s
ip link add host%[2]d type veth peer name eth0 netns %[1]s
ip link set host%[2]d master hosts up
ip -n %[1]s addr add 192.0.2.1%[2]d/24 dev eth0
ip -n %[1]s link set eth0 up
ip -n %[1]s link set lo up`, network, i))
		shell := filepath.Join(base, network)
		require.NoError(t, os.WriteFile(shell, []byte("#!/bin/sh\nexec ip netns exec "+network+" /bin/sh \"$@\"\n"), 0o755))
		inventory += fmt.Sprintf("h%d ansible_connection=local ansible_host=192.0.2.1%[1]d ansible_shell_executable=%s\n", i, shell)
	}
	for name, text := range map[string]string{"inventory.ini": inventory, "load.yaml": `
name: counts
verify: true
broker: {protocol: amqp}
groups:
  senders: {role: producer, destination: queue://perfmq, producers: 6, message-count: 1500, rate: 1500, max-pending: 100}
  readers: {role: consumer, destination: queue://perfmq, consumers: 6}
`} {
		require.NoError(t, os.WriteFile(filepath.Join(base, name), []byte(text), 0o600))
	}
	startBroker(t, binary, "192.0.2.1:5672")
	sh("cd " + base + "; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=h1 " +
		"-addext subjectAltName=IP:192.0.2.11 -keyout key.pem -out cert.pem 2>/dev/null")
	play := func(name string, variables ...string) (results, out string, err error) {
		home, results := filepath.Join(base, name), filepath.Join(base, name+"-results")
		require.NoError(t, os.Mkdir(home, 0o700))
		cmd := exec.CommandContext(t.Context(), "ansible-playbook", "-i", filepath.Join(base, "inventory.ini"), "../ansible/perfmq.yml",
			"-e", "binary="+binary, "-e", "results="+results, "-e", "scenario="+filepath.Join(base, "load.yaml"))
		for _, v := range variables {
			cmd.Args = append(cmd.Args, "-e", v)
		}
		cmd.Env = append(os.Environ(), "TMPDIR="+home, "ANSIBLE_PIPELINING=1", "LC_ALL=C.UTF-8")
		text, err := cmd.CombinedOutput()
		left, _ := filepath.Glob(filepath.Join(home, "perfmq-*"))
		require.Empty(t, left)
		return results, string(text), err
	}
	var both sync.WaitGroup
	both.Go(func() {
		results, out, err := play("good", "url=amqp://192.0.2.1", "password=secret", `{"load_flags": "--user u", "merge_flags": "--threshold 'lost == 0'"}`,
			fmt.Sprintf(`{"tls": {"cert": "%[1]s/cert.pem", "key": "%[1]s/key.pem", "ca": "%[1]s/cert.pem"}}`, base))
		require.NoError(t, err, out)
		t.Log(out[strings.Index(out, "TASK [Say"):])
		requireMerged(t, results, "result", 3, 1500)
		for _, name := range []string{"perfmq.html", "perfmq.md", "perfmq.xml"} {
			require.FileExists(t, filepath.Join(results, name))
		}
	})
	both.Go(func() {
		_, out, err := play("bad", "url=amqp://192.0.2.1:5673", "rendezvous_port=8444")
		require.Error(t, err)
		require.Contains(t, out, "could not begin", out)
	})
	both.Wait()
}

package brokerside

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// served is what exporters serve.
const served = `# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total %g
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1.5e+08
process_open_fds 42
# TYPE jvm_memory_used_bytes gauge
jvm_memory_used_bytes{area="heap",id="G1 Eden Space"} 1000
jvm_memory_used_bytes{area="heap",id="G1 Old Gen"} 234
jvm_memory_used_bytes{area="nonheap",id="Metaspace"} 99
# TYPE jvm_gc_pause_seconds summary
jvm_gc_pause_seconds_count{action="minor"} %d
jvm_gc_pause_seconds_sum{action="minor"} %g
jvm_threads_live_threads 7
node_load1 1.25
node_disk_io_time_seconds_total{device="sda"} %g
node_disk_read_bytes_total{device="sda"} 100
node_disk_written_bytes_total{device="sda"} %d
node_network_receive_bytes_total{device="eth0"} %d
node_network_receive_bytes_total{device="lo"} 5
node_network_transmit_bytes_total{device="eth0"} 11
`

// Metrics are known by their names.
func TestScrape(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "u" || password != "s3cret" || r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		k := n.Add(1) - 1
		_, _ = fmt.Fprintf(w, served, 10+0.5*float64(k), 3+k, 0.25+0.1*float64(k), 5+0.05*float64(k), 1000+1000*k, 50+7*k)
	}))
	defer server.Close()
	w, err := Open(t.Context(), Config{Metrics: Endpoint{URL: strings.Replace(server.URL, "http://", "http://u:s3cret@", 1)}})
	require.NoError(t, err)
	w.patience = time.Minute // each answer counts, also on a machine with much else to do
	w.Start(asIs)
	until(t, func() bool { return n.Load() >= 3 })
	w.Stop()
	k := n.Load() - 1 // intervals
	sum := w.Sum()
	require.Equal(t, []string{server.URL + "/metrics"}, sum.Sources)
	require.InDelta(t, 500_000*k, *sum.Whole.CPU, 2)
	require.EqualValues(t, 150_000_000, *sum.Whole.Memory)
	require.EqualValues(t, 42, *sum.Whole.Files)
	require.EqualValues(t, 1234, *sum.Whole.Heap)
	require.EqualValues(t, 7, *sum.Whole.Threads)
	require.EqualValues(t, k, *sum.Whole.Collections)
	require.InDelta(t, 100_000*k, *sum.Whole.CollectionTime, float64(2*k))
	require.InDelta(t, 1.25, *sum.Whole.Load, 0)
	require.EqualValues(t, 1000*k, *sum.Whole.DiskWritten)
	require.Zero(t, *sum.Whole.DiskRead)
	require.EqualValues(t, 7*k, *sum.Whole.NetIn)
	require.Zero(t, *sum.Whole.NetOut)
	require.Positive(t, *sum.Whole.DiskBusy)
	require.InDelta(t, 50_000*k, *sum.Whole.DiskTime, float64(2*k))
	require.Empty(t, sum.Notes)
}

// An endpoint without an answer, or without metrics, costs notes, not the run. Notes show neither password nor query.
func TestScrapeThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		note  string
	}{
		"no metrics": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>s3cret")) }, "cannot be read"},
		"silence":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.serve)
			defer server.Close()
			w, err := Open(t.Context(), Config{Metrics: Endpoint{URL: strings.Replace(server.URL, "http://", "http://u:pa55word@", 1) + "/?token=s3cret"}})
			require.NoError(t, err)
			if w.patience = time.Minute; name == "silence" {
				w.patience = 100 * time.Millisecond
			}
			w.Start(asIs)
			until(t, func() bool { return len(w.Sum().Notes) > 0 })
			w.Stop()
			require.Contains(t, w.Sum().Notes[0], c.note)
			require.NotContains(t, fmt.Sprint(w.Sum()), "pa55word")
			require.NotContains(t, fmt.Sprint(w.Sum()), "token")
			require.Nil(t, w.Sum().Whole.CPU)
		})
	}
}

// pageOf returns a sample of a page.
func pageOf(t *testing.T, text string) (s sample) {
	t.Helper()
	values := musttest.Get(parsePage([]byte(text)))(t)
	s.page(values)
	return s
}

// Sums that are no numbers, a JVM's load of -1 (unknown) and impossible counters are dropped.
func TestValuesThatAreRead(t *testing.T) {
	s := pageOf(t, `process_open_fds{a="1"} 1.7e308
process_open_fds{a="2"} 1.7e308
system_load_average_1m -1
node_network_receive_bytes_total{device="eth0"} 1e300
node_network_transmit_bytes_total{device="eth0"} NaN
node_disk_read_bytes_total{device="sda"} -1
node_disk_io_time_seconds_total{device="sda"} NaN
`)
	require.Nil(t, s.Load)
	require.Nil(t, s.Files)
	require.Nil(t, s.NetIn)
	require.Nil(t, s.NetOut)
	require.Nil(t, s.DiskRead)
	require.Empty(t, s.diskTime)
}

// The process of a node exporter is its own, not the broker's. Devices that lie on disks, and partitions, do not count
// beside these.
func TestNodeExporter(t *testing.T) {
	const ofProcess = `process_cpu_seconds_total 5
process_resident_memory_bytes 1000
process_threads 3
process_open_fds 9
`
	s := pageOf(t, ofProcess)
	require.EqualValues(t, 5_000_000, *s.CPU)
	require.EqualValues(t, 1000, *s.Memory)
	s = pageOf(t, ofProcess+`node_exporter_build_info{version="1.8.2"} 1
node_load1 0.5
jvm_threads_live_threads 7
`)
	require.Nil(t, s.CPU)
	require.Nil(t, s.Memory)
	require.Nil(t, s.Files)
	require.EqualValues(t, 7, *s.Threads)
	require.InDelta(t, 0.5, *s.Load, 0)

	s = pageOf(t, `node_disk_read_bytes_total{device="sda"} 1
node_disk_read_bytes_total{device="sda1"} 2
node_disk_written_bytes_total{device="sda"} 3
node_disk_io_time_seconds_total{device="sda"} 4
node_disk_io_time_seconds_total{device="dm-0"} 5
`)
	require.EqualValues(t, 1, *s.DiskRead)
	require.EqualValues(t, 3, *s.DiskWritten)
	require.Equal(t, map[string]uint64{"sda": 4000}, s.diskTime)
	require.Nil(t, pageOf(t, `node_disk_read_bytes_total{device="dm-0"} 5`+"\n").DiskRead, "not known, rather than none")
}

func TestWholeDisks(t *testing.T) {
	all := map[string]float64{}
	names := []string{"sda", "sda1", "nvme1n1", "nvme1n10", "nvme1n1p1", "nvme1n10p3", "xvda1", "loop0", "dm-1", "md0", "disk1", "vdp", "vdp1"}
	for _, name := range names {
		all[name] = 0
	}
	var list []string
	for _, name := range names {
		if isDisk(name, all) {
			list = append(list, name)
		}
	}
	require.Equal(t, []string{"sda", "nvme1n1", "nvme1n10", "xvda1", "disk1", "vdp"}, list)
}

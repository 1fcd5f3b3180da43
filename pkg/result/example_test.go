package result_test

import (
	"fmt"

	"github.com/perfmq/perfmq/pkg/result"
)

// Read a result, and print numbers as in a report.
func Example() {
	r, err := result.Read("testdata/v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var completed uint64
	var length int64
	for _, row := range r.Rows {
		if row.Phase == result.Measure {
			completed += row.Producers.Completed
			length += row.Length
		}
	}
	seconds := float64(length) / 1e6
	fmt.Printf("%.0f msg/s accepted over %.0f s\n", float64(completed)/seconds, seconds)
	fmt.Printf("99%% of the answers within %d us\n", r.Latencies[result.Ack].Percentile(99))
	for _, f := range r.Findings {
		fmt.Println(f.Text)
	}
	// Output:
	// 20 msg/s accepted over 2 s
	// 99% of the answers within 4626 us
	// messages lost: 2
}

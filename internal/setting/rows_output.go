package setting

import (
	"time"

	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/threshold"
)

func verifyRows() []Setting {
	return append([]Setting{
		{
			Name:   "verify",
			Brief:  "check that each message arrives once and undamaged",
			Places: inRun, Section: SectionVerification, Help: "number all messages and check that each arrives once and " +
				"undamaged",
			Set: onOff(func(s *Values) *bool { return &s.Verify }),
		},
		{
			Name: "verify-file", Section: SectionVerification, Arg: argFile, Files: true,
			Help: "as --verify, and write this process' side to a file, for perfmq verify to join with those of others",
			Set:  text(func(s *Values) *string { return &s.VerifyFile }),
		},
	}, Verdicts()...)
}

// Verdicts are the settings that say which outcomes of the verification fail a run, also of perfmq verify.
func Verdicts() []Setting {
	return []Setting{
		{
			Name: "allow-lost", Places: inRun, Section: SectionVerification, Roles: reading(),
			Help: "messages that are lost do not make the run a failure",
			Set:  onOff(func(s *Values) *bool { return &s.Allow.Lost }),
		},
		{
			Name: "allow-duplicates", Places: inRun, Section: SectionVerification, Roles: reading(),
			Help: "messages that arrive more than once do not make the run a failure",
			Set:  onOff(func(s *Values) *bool { return &s.Allow.Duplicates }),
		},
		{
			Name: "allow-damaged", Places: inRun, Section: SectionVerification, Roles: reading(),
			Help: "messages that arrive damaged do not make the run a failure",
			Set:  onOff(func(s *Values) *bool { return &s.Allow.Damaged }),
		},
		{
			Name: "fail-on-disorder", Places: inRun, Section: SectionVerification, Roles: reading(),
			Help: "messages that arrive out of order make the run a failure",
			Set:  setFailOnDisorder,
		},
		{
			Name: "fail-on-foreign", Places: inRun, Section: SectionVerification, Roles: reading(),
			Help: "messages of another run or tool make the run a failure",
			Set:  onOff(func(s *Values) *bool { return &s.FailOnForeign }),
		},
	}
}

func formats() []string { return []string{run.Artemis, run.RocketMQ, run.Short} }

func outputRows() []Setting {
	return []Setting{
		{
			Name:    "threshold",
			Brief:   "demand such as 'ack.p99 < 50ms'; exit status 3 if it is not kept",
			Section: SectionOutput, Arg: "DEMAND", List: true,
			Help: "METRIC OP VALUE, a demand on the result, such as 'ack.p99 < 50ms' or 'received.min >= 90% of target'; may " +
				"be repeated. One that is not kept makes exit status 3. " +
				"All metrics: perfmq scenario metrics",
			Set: thresholds(func(s *Values) *[]threshold.Threshold { return &s.Thresholds }), Suggest: suggestMetrics,
		},
		{
			Name: "label", Section: SectionOutput, Arg: "NAME=TEXT", List: true,
			Help: "a note for all outputs, such as broker='Artemis 2.56' or heap=512m; may be repeated",
			Set:  setLabel,
		},
		{
			Name: "stall-threshold", Places: inRun, Section: SectionOutput, Arg: argTime, Default: "1s",
			Help: "tell of stalls of the broker: for so long or longer nothing was confirmed or received, although messages " +
				"were in flight, due, or waiting; 0 is never",
			Set: span(time.Second, func(s *Values) *time.Duration { return &s.StallThreshold }),
		},
		{
			Name: "format", Section: SectionOutput, Arg: argName, Default: run.Artemis,
			Help: "console output: artemis, as artemis perf, or rocketmq, as RocketMQ's own benchmark: a line every 10s about " +
				"the last 9s, each with the same summary; or short: " +
				"one line while the run goes on, on a terminal, and a summary of 25 lines at most",
			Words: formats(), Set: setFormat,
		},
		{
			Name: "interval", Section: SectionOutput, Arg: argTime, Default: "that of the format",
			Help: "time from one block or line of the console to the next, at least 1s; files keep their seconds",
			Set:  span(time.Second, func(s *Values) *time.Duration { return &s.Interval }),
		},
		{
			Name:    "show-latency",
			Brief:   "print latencies every second, not only at the end",
			Section: SectionOutput, Help: "print latencies every second, not only at the end",
			Set: onOff(func(s *Values) *bool { return &s.ShowLatency }),
		},
		{
			Name:    "json",
			Brief:   "write every second and the summary as JSON; - is standard output",
			Section: SectionOutput, Arg: argFile, Files: true,
			Help: "write counts and latencies of every second and the summary as JSON; with - to standard output, the " +
				"console then to standard error",
			Set: text(func(s *Values) *string { return &s.JSONFile }),
		},
		{
			Name: "hdr", Section: SectionOutput, Arg: argFile, Files: true,
			Help: "write the latencies of every second as an HdrHistogram log, in microseconds",
			Set:  text(func(s *Values) *string { return &s.HDRFile }),
		},
		{
			Name: "result", Section: SectionOutput, Arg: argFolder, Folders: true,
			Help: "write the whole result into a new folder as the run goes on: result.json, a row and the latencies of every " +
				"second, with --verify also verify.pv",
			Set: text(func(s *Values) *string { return &s.ResultDir }),
		},
	}
}

// servedRows are the settings of servers that listen during a run.
func servedRows() []Setting {
	return []Setting{
		{
			Name: "metrics", Section: SectionOutput, Arg: "[HOST]:PORT",
			Help: "serve Prometheus metrics during the run, such as :9400, which is on loopback; 0.0.0.0:9400 is on all " +
				"addresses",
			Set: text(func(s *Values) *string { return &s.MetricsAddr }),
		},
		{
			Name: "metrics-linger", Section: SectionOutput, Arg: "TIME|scrape",
			Help: "with --metrics: serve the final values for this time after the run; scrape: until they were scraped, for " +
				"1m at most",
			Set: setLinger,
		},
		{
			Name: "metrics-web-config", Section: SectionOutput, Arg: argFile, Files: true,
			Help: "with --metrics: TLS and basic authentication, from a web configuration file of Prometheus's",
			Set:  text(func(s *Values) *string { return &s.MetricsWeb }),
		},
		{
			Name: "web", Section: SectionOutput, Arg: "[HOST]:PORT",
			Help: "serve the page of perfmq report while the run goes on, such as :8080, which is on loopback; 0.0.0.0:8080 " +
				"is on all addresses",
			Set: text(func(s *Values) *string { return &s.WebAddr }),
		},
	}
}

// plainRows are the last settings of a run.
func plainRows() []Setting {
	return []Setting{
		{
			Name: "silent", Section: SectionOutput, Help: "print nothing but errors",
			Set: onOff(func(s *Values) *bool { return &s.Silent }),
		},
		{
			Name: "dry-run", Section: SectionOutput, Help: "check everything without connecting, print the resolved plan and " +
				"end",
			Set: onOff(func(s *Values) *bool { return &s.DryRun }),
		},
		{
			Name: "option", Places: inBroker, Short: "o", Arg: "KEY=VALUE", List: true,
			Help:  "option of the protocol; may be repeated",
			Pairs: true, Set: setOption, Suggest: suggestOptions,
		},
	}
}

package setting

import (
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Values are the values of all settings, each read by itself; the plan judges their meaning together.
type Values struct {
	URL, ConsumerURL               string
	Protocol, ConsumerProtocol     string
	Client                         string
	User, Password, PasswordFile   string
	ClientID                       string
	TLS                            driver.TLS
	ConnectTimeout, DrainTimeout   time.Duration
	NumDestinations                int
	Producers, Consumers           int
	Threads                        int
	SharedConnections              bool
	ConsumerConnections            int
	MaxPending                     int
	SendTimeout                    time.Duration
	InDoubt                        string
	Rate                           load.Schedule
	Relative                       *plan.Relative
	Count                          uint64
	Duration, Warmup               time.Duration
	Marks                          []uint64
	MessageSizes                   []Sized
	BodyFile, Fill                 string
	MessageType                    string
	Persistent                     bool
	TTL, DeliveryDelay             time.Duration
	Priority                       int
	MessageGroup                   string
	Properties                     []driver.Property
	CommitInterval                 int
	Durable, KeepSubscription, Tx  bool
	TxSize                         int
	Shared                         int
	Selector                       string
	Credit, MaxMessageSize         int
	ConsumerWork                   load.Work
	ConsumerRate                   load.Rate
	ConsumerFail                   load.Share
	ConsumerFailAs                 driver.Verdict
	ShowLatency, Silent, DryRun    bool
	Format                         string
	JSONFile, HDRFile, MetricsAddr string
	ResultDir, WebAddr, MetricsWeb string
	LingerScrape                   bool // MetricsLinger ends with a scrape
	MetricsLinger, Interval        time.Duration
	Options                        []string
	Labels                         map[string]string
	WaitForBroker                  time.Duration
	Hosts                          string
	Reconnect                      bool
	ReconnectTimeout               time.Duration
	ReconnectDelay                 time.Duration
	Thresholds, FindMax            []threshold.Threshold
	StallThreshold                 time.Duration
	BrokerCount, ManagementURL     string
	Verify                         bool
	VerifyFile                     string
	Allow                          verify.Allow
	FailOnForeign                  bool
	Shard                          plan.Shard
	RunID                          string
	StartAt                        plan.Moment
	Side                           brokerside.Config
	Embedded                       bool
	Faults                         store.Faults

	sources map[string]Source // of the settings that are not at their default
}

// The values of --broker-count.
const (
	CountAuto = "auto" // where the broker can be asked
	CountOff  = "off"
)

// The values of --in-doubt.
const (
	DoubtReport = "report"
	DoubtResend = "resend"
)

// Sized is one of the sizes of --message-size.
type Sized struct{ Size, Weight int }

// Source tells where a value comes from. The greater one wins.
type Source int

// The sources.
const (
	Default     Source = iota
	File               // a scenario file
	Variable           // PERFMQ_...
	CommandLine        // a flag
)

// Defaults returns the values of a run for which nothing is given.
func Defaults() *Values {
	return &Values{
		Client: driver.Native, TxSize: 1, ConnectTimeout: 10 * time.Second,
		ReconnectDelay: plan.DefaultReconnectDelay, DrainTimeout: 30 * time.Second,
		StallThreshold:  plan.DefaultStall,
		NumDestinations: 1, Producers: 1, Consumers: 1, MaxPending: 1, MessageSizes: []Sized{{1024, 1}},
		Fill:        string(plan.Random),
		MessageType: string(plan.Bytes), ConsumerFailAs: driver.Release,
		InDoubt:  DoubtReport,
		Priority: -1, Format: run.Artemis, BrokerCount: CountAuto, MaxMessageSize: driver.DefaultMaxBody,
		Hosts:   string(plan.InOrder),
		Allow:   verify.Allow{Disorder: true},
		sources: map[string]Source{},
	}
}

// Has tells whether a setting was given, in whatever way.
func (v *Values) Has(name string) bool { return v.sources[name] > Default }

// Source returns where the value of a setting comes from.
func (v *Values) Source(name string) Source { return v.sources[name] }

// Forget lets a setting pass for one that was not given. Its value stays.
func (v *Values) Forget(name string) { delete(v.sources, name) }

// Read takes a value from a source. The error describes the mistake in the value, without naming the setting.
func (v *Values) Read(s *Setting, from Source, text string) error {
	v.sources[s.Name] = from
	return s.Set(v, text)
}

package setting

import (
	"errors"
	"fmt"
	"math"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/quantity"
)

func sideRows() []Setting {
	return []Setting{
		{
			Name: "broker-pid", Section: SectionSide, Arg: "PID",
			Help: "watch this process of this host, the broker: processor time, memory, threads, open files; and the host: " +
				"load, disks, network. If it ends, one that is started " +
				"by the same command line is watched on",
			Set: func(s *Values, t string) error {
				n, err := quantity.Whole(t, 1, math.MaxInt32)
				s.Side.PID = int32(n) //nolint:gosec // bounded
				return err
			},
		},
		{
			Name: "broker-metrics", Section: SectionSide, Arg: "URL",
			Help: "watch a broker on any host by its Prometheus endpoint, or that of its exporter: node exporter, JMX " +
				"exporter, RabbitMQ, Artemis, RocketMQ",
			Set: func(s *Values, t string) error {
				s.Side.Metrics.URL = t
				return brokerside.CheckMetrics(t)
			},
		},
		{
			Name: "broker-series", Section: SectionSide, Arg: "SERIES", List: true,
			Help: `series of --broker-metrics to keep, such as 'artemis_message_count{queue="TEST"}'; ` +
				"those of a name that have the labels are added up; may be repeated",
			Set: func(s *Values, t string) error {
				series, err := brokerside.ParseSeries(t)
				switch {
				case err != nil:
					return err
				case len(s.Side.Series) == brokerside.MaxSeries:
					return fmt.Errorf("must be one of at most %d", brokerside.MaxSeries)
				}
				s.Side.Series = append(s.Side.Series, series)
				return nil
			},
		},
		{
			Name: "broker-log", Section: SectionSide, Arg: argFile, Files: true,
			Help: "count the lines of errors and warnings that are added to this log of the broker's",
			Set: func(s *Values, t string) error {
				if t == "" {
					return errors.New("is empty")
				}
				s.Side.Log = t
				return nil
			},
		},
	}
}

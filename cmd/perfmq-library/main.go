// Command perfmq-library is perfmq with RocketMQ's client libraries, for --client library: perfmq hands such runs over
// to it. See package elsewhere.
package main

import (
	"os"

	"github.com/perfmq/perfmq/internal/drivers/library/rocketmq5go"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/pkg/perfmq"
)

func main() { os.Exit(perfmq.Main(rocketmqgo.Factory(), rocketmq5go.Factory())) }

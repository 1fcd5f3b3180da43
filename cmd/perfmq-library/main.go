// Command perfmq-library is perfmq with rocketmq-client-go, for --client library over RocketMQ: perfmq hands such runs
// over to it. See package elsewhere.
package main

import (
	"os"

	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/pkg/perfmq"
)

func main() { os.Exit(perfmq.Main(rocketmqgo.Factory())) }

// Command driver-mqtt is perfmq with one more protocol: `perfmq mqtt client`, and all else that perfmq does.
package main

import (
	"os"

	"github.com/perfmq/perfmq/examples/driver-mqtt/mqtt"
	"github.com/perfmq/perfmq/pkg/perfmq"
)

func main() { os.Exit(perfmq.Main(mqtt.Factory())) }

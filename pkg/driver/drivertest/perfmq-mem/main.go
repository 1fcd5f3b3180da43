// Command perfmq-mem is perfmq with the protocol mem, a broker inside the process: for tests, and for the ceiling of
// perfmq itself.
package main

import (
	"os"

	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/perfmq"
)

func main() { os.Exit(perfmq.Main(mem.Factory())) }

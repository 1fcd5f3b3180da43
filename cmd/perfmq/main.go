// Command perfmq puts a measured load on a message broker. See package cli.
package main

import (
	"os"

	"github.com/perfmq/perfmq/pkg/perfmq"
)

func main() { os.Exit(perfmq.Main()) }
